//! What is trained: for now one weight and one bias, fitted to the line `y = 2 x - 1` by plain gradient descent.

/// How many `f32` the run needs.
pub const SLAB_LEN: usize = 64;

const RATE: f32 = 0.05;
const EPOCHS: usize = 20;

/// Emits the loss of every epoch, then the parameters.
///
/// # Errors
///
/// The loss is infinite or NaN.
pub fn train(
    slab: &mut [f32; SLAB_LEN],
    emit: &mut dyn FnMut(&'static str, u32),
) -> Result<(), &'static str> {
    let [weight, bias, points @ ..] = slab;
    let mut x = -1.0;
    for point in points.iter_mut() {
        *point = x;
        x += 0.03125;
    }

    for _ in 0..EPOCHS {
        let mut loss: f32 = 0.0;
        for &mut x in points.iter_mut() {
            let error = *weight * x + *bias - (2.0 * x - 1.0);
            loss += error * error;
            *weight -= RATE * error * x;
            *bias -= RATE * error;
        }
        emit("loss", loss.to_bits());
        if !loss.is_finite() {
            return Err("the loss is not finite");
        }
    }
    emit("weight", weight.to_bits());
    emit("bias", bias.to_bits());
    Ok(())
}
