//! Convolution the plain way: the image is gathered into columns, `taps x pixels`, and multiplied.

use std::cell::RefCell;

use crate::{
    shapes::{Convolution, Operands, Pass},
    theirs::Their,
};

thread_local! {
    static COLUMNS: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn run(convolution: &Convolution, pass: Pass, product: Their, operands: &mut Operands) {
    let Convolution { channels, size, outputs, .. } = *convolution;
    let (taps, pixels) = (channels * 9, convolution.out_size().pow(2));
    let Operands { x, weight, bias, dy, result, .. } = operands;
    COLUMNS.with_borrow_mut(|columns| {
        columns.resize(taps * pixels, 0.0);
        for sample in 0..convolution.batch {
            let image = sample * channels * size * size..(sample + 1) * channels * size * size;
            let maps = sample * outputs * pixels..(sample + 1) * outputs * pixels;
            match pass {
                Pass::Forward => {
                    let y = &mut result[maps];
                    y.chunks_mut(pixels).zip(&*bias).for_each(|(y, &bias)| y.fill(bias));
                    gather(convolution, &x[image], columns);
                    product([outputs, pixels, taps], weight, [taps, 1], columns, [pixels, 1], 1.0, y);
                }
                Pass::WeightGradient => {
                    gather(convolution, &x[image], columns);
                    let keep = if sample == 0 { 0.0 } else { 1.0 };
                    product([outputs, taps, pixels], &dy[maps], [pixels, 1], columns, [1, pixels], keep, result);
                }
                Pass::InputGradient => {
                    product([taps, pixels, outputs], weight, [1, taps], &dy[maps], [pixels, 1], 0.0, columns);
                    scatter(convolution, columns, &mut result[image]);
                }
            }
        }
    });
}

/// For each row of the columns that lies in the image: where it starts there and here, and which of its pixels do.
fn rows(convolution: &Convolution, mut each: impl FnMut(Option<usize>, usize, [usize; 2])) {
    let Convolution { channels, size, stride, .. } = *convolution;
    let out = convolution.out_size();
    for tap in 0..channels * 9 {
        let (channel, down, right) = (tap / 9, tap / 3 % 3, tap % 3);
        // Pixels whose source lies in the padding at the left, and behind the last one whose source lies in the image.
        let first = usize::from(right == 0);
        let end = ((size - right) / stride + 1).min(out);
        for row in 0..out {
            let y = row * stride + down;
            let source = (1..=size).contains(&y).then(|| (channel * size + y - 1) * size + first * stride + right - 1);
            each(source, (tap * out + row) * out, [first, end]);
        }
    }
}

fn gather(convolution: &Convolution, image: &[f32], columns: &mut [f32]) {
    let (stride, out) = (convolution.stride, convolution.out_size());
    rows(convolution, |source, at, [first, end]| {
        let row = &mut columns[at..at + out];
        let Some(source) = source else { return row.fill(0.0) };
        row[..first].fill(0.0);
        row[end..].fill(0.0);
        row[first..end].iter_mut().zip(image[source..].iter().step_by(stride)).for_each(|(to, &from)| *to = from);
    });
}

fn scatter(convolution: &Convolution, columns: &[f32], image: &mut [f32]) {
    let stride = convolution.stride;
    image.fill(0.0);
    rows(convolution, |source, at, [first, end]| {
        if let Some(source) = source {
            let from = &columns[at + first..at + end];
            image[source..].iter_mut().step_by(stride).zip(from).for_each(|(to, &from)| *to += from);
        }
    });
}
