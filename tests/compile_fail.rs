//! What the compiler says about wrong networks: every program in `tests/ui` but `compiles.rs` is one that a newcomer could
//! have written, and its `.stderr` file is what the compiler prints.
//!
//! `TRYBUILD=overwrite cargo test --test compile_fail` writes these files anew.

#![cfg(feature = "std")]

/// What only a build finds: a constant within a function.
const BUILT: &str = "over_budget.rs";

#[test]
fn errors_say_what_is_wrong_and_where() {
    // Checked all at once, which takes a third of the time of building each.
    let cases = trybuild::TestCases::new();
    for path in std::fs::read_dir("tests/ui").unwrap().map(|entry| entry.unwrap().path()) {
        let checked = !path.ends_with("compiles.rs") && !path.ends_with(BUILT);
        if checked && path.extension().is_some_and(|extension| extension == "rs") {
            cases.compile_fail(path);
        }
    }
    drop(cases);
    // With one program that compiles, all are built.
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/compiles.rs");
    cases.compile_fail(format!("tests/ui/{BUILT}"));
}
