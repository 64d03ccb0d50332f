//! What the firmware did wrong, in plain language.
