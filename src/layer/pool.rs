//! Pools.

use alloc::vec::Vec;

use super::conv::window_settings;
use super::{Layer, Recorder, Setting};
use crate::backend::Backend;
use crate::ops::Window2d;
use crate::ops::avg_pool2d::CountPadding;
use crate::tape::Handle;

/// The largest element of every window over `[n, c, h, w]`.
#[derive(Clone, Copy, Debug)]
pub struct MaxPool2d(Window2d);

impl MaxPool2d {
    /// Over these windows.
    #[must_use]
    pub const fn new(window: Window2d) -> Self {
        Self(window)
    }
}

impl<B: Backend> Layer<B> for MaxPool2d {
    fn kind(&self) -> &'static str {
        "MaxPool2d"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        r.tape().max_pool2d(x, self.0)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        window_settings(self.0, self.0.size).into()
    }
}

/// The mean of every window over `[n, c, h, w]`.
#[derive(Clone, Copy, Debug)]
pub struct AvgPool2d {
    window: Window2d,
    padding: CountPadding,
}

impl AvgPool2d {
    /// Over these windows; padding counts as zeros.
    #[must_use]
    pub const fn new(window: Window2d) -> Self {
        Self { window, padding: CountPadding::Yes }
    }

    /// Whether padding counts.
    #[must_use]
    pub const fn count_padding(self, padding: CountPadding) -> Self {
        Self { padding, ..self }
    }
}

impl<B: Backend> Layer<B> for AvgPool2d {
    fn kind(&self) -> &'static str {
        "AvgPool2d"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        r.tape().avg_pool2d(x, self.window, self.padding)
    }
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut settings: Vec<_> = window_settings(self.window, self.window.size).into();
        settings.push(("count_padding", Setting::Flag(self.padding == CountPadding::Yes)));
        settings
    }
}

/// The mean of every plane: `[n, c, h, w]` becomes `[n, c]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct GlobalAvgPool2d;

impl<B: Backend> Layer<B> for GlobalAvgPool2d {
    fn kind(&self) -> &'static str {
        "GlobalAvgPool2d"
    }
    fn forward(&self, r: &mut Recorder<'_, B>, x: Handle) -> Handle {
        let y = r.tape().global_avg_pool2d(x);
        r.tape().flatten(y)
    }
}
