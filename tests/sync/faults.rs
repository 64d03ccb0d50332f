//! What goes wrong on the way: APs, registers, and everything at once.

mod altered;
mod ap_arrival;
mod matrix;
mod matrix_free_running;
mod refused;
mod registers;
mod unused_pairs;
