//! Any text as a command line. Nothing may panic; what is accepted is what was said, and stays so.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mtrr_pat::policy::{PatChoice, Policy};

fuzz_target!(|line: &str| {
    let parsed = Policy::DEFAULT.with_command_line(line);
    match parsed {
        Ok(policy) => {
            if let PatChoice::Layout(pat) = policy.pat {
                assert!((0..8).all(|slot| pat.slot(slot).is_ok()), "{pat}");
            }
            // Saying it twice changes nothing.
            assert_eq!(policy.with_command_line(line), Ok(policy));
        }
        Err(error) => {
            assert!(line.split_whitespace().any(|word| word == error.word));
            assert!(error.word.contains(error.value));
            assert!(error.to_string().contains(error.word));
        }
    }
    if !line.contains("mtrr_pat=") {
        assert!(
            parsed.is_ok(),
            "no word of this crate's takes a value but one"
        );
    }
});
