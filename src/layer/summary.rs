//! A model as a table.
