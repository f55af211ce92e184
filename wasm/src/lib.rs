//! slabgrad in the browser.
