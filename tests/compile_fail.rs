//! What the compiler says about wrong networks: every program in `tests/ui` but `compiles.rs` is one that a newcomer could
//! have written, and its `.stderr` file is what the compiler prints.
//!
//! `TRYBUILD=overwrite cargo test --test compile_fail` writes these files anew.

#![cfg(feature = "std")]

#[test]
fn errors_say_what_is_wrong_and_where() {
    let cases = trybuild::TestCases::new();
    for path in std::fs::read_dir("tests/ui").unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("compiles.rs") {
            cases.compile_fail(path);
        }
    }
}
