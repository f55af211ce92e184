//! Expressions over a tape: operators, and a method for every operation.

use core::cell::{RefCell, RefMut};
use core::ops::{Add, Div, Mul, Neg, Sub};

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

use super::storage::Elem;
use super::{Handle, Storage, Tape};
use crate::backend::Backend;
use crate::shape::Shape;

/// A tape that is borrowed for writing expressions; see [`Tape::scope`].
pub struct Scope<'t, S: Storage>(RefCell<&'t mut Tape<S>>);

/// A value in an expression. It can be copied; operators take it by value or by reference, with numbers on either side.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use slabgrad::tape::Tape;
///
/// let mut tape = Tape::new();
/// let w = tape.parameter([2], &[0.5, -1.0]);
/// let scope = tape.scope();
/// let (x, w) = (scope.constant([2], &[2.0, 3.0]), scope.of(w));
/// let y = (1.0 - &x * &w).relu().sum(&[], false);
/// assert_eq!(y.item(), 4.0);
/// # }
/// ```
pub struct Expr<'t, S: Storage> {
    var: Handle,
    scope: &'t Scope<'t, S>,
}

impl<S: Storage> Clone for Expr<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: Storage> Copy for Expr<'_, S> {}

impl<S: Storage> Tape<S> {
    /// Borrows the tape for writing expressions.
    #[must_use]
    pub const fn scope(&mut self) -> Scope<'_, S> {
        Scope(RefCell::new(self))
    }
}

impl<'t, S: Storage> Scope<'t, S> {
    /// The expression of a value that is on the tape already.
    #[must_use]
    pub const fn of(&'t self, var: Handle) -> Expr<'t, S> {
        Expr { var, scope: self }
    }

    /// As [`Tape::parameter`].
    #[track_caller]
    pub fn parameter(&'t self, shape: impl Into<Shape>, data: &[Elem<S>]) -> Expr<'t, S> {
        self.of(self.tape().parameter(shape, data))
    }

    /// As [`Tape::constant`].
    #[track_caller]
    pub fn constant(&'t self, shape: impl Into<Shape>, data: &[Elem<S>]) -> Expr<'t, S> {
        self.of(self.tape().constant(shape, data))
    }

    /// The tape, for what expressions cannot say. It has to be let go before the next expression.
    ///
    /// # Panics
    /// When it is still held.
    pub fn tape(&self) -> RefMut<'_, &'t mut Tape<S>> {
        self.0.borrow_mut()
    }
}

impl<'t, S: Storage> Expr<'t, S> {
    /// The handle, which outlives the scope.
    #[must_use]
    pub const fn handle(self) -> Handle {
        self.var
    }

    /// The scope that it belongs to.
    #[must_use]
    pub const fn scope(self) -> &'t Scope<'t, S> {
        self.scope
    }

    /// The shape.
    #[must_use]
    pub fn shape(self) -> Shape {
        self.tape().shape(self.var)
    }

    /// The first element, such as that of a loss.
    #[must_use]
    #[track_caller]
    pub fn item(self) -> Elem<S> {
        let mut tape = self.tape();
        tape.force(self.var);
        tape.item(self.var)
    }

    /// The elements, copied.
    #[cfg(feature = "alloc")]
    #[must_use]
    #[track_caller]
    pub fn to_vec(self) -> Vec<Elem<S>> {
        self.tape().force(self.var).to_vec()
    }

    pub(crate) fn tape(self) -> RefMut<'t, &'t mut Tape<S>> {
        self.scope.tape()
    }

    /// Another value of the same scope.
    pub(crate) const fn with(self, var: Handle) -> Self {
        Self { var, ..self }
    }

    /// A number as a value.
    #[track_caller]
    fn number(self, number: Elem<S>) -> Self {
        self.with(self.tape().constant(Shape::SCALAR, &[number]))
    }
}

impl<S: Storage> core::fmt::Display for Expr<'_, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.tape().show(self.var).fmt(f)
    }
}

impl<S: Storage> core::fmt::Debug for Expr<'_, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

impl<S: Storage> Neg for Expr<'_, S> {
    type Output = Self;
    #[track_caller]
    fn neg(self) -> Self {
        let var = self.tape().neg(self.var);
        self.with(var)
    }
}

impl<'t, S: Storage> Neg for &Expr<'t, S> {
    type Output = Expr<'t, S>;
    #[track_caller]
    fn neg(self) -> Expr<'t, S> {
        -*self
    }
}

/// An operator between expressions, by value or by reference: `operators!(Add, add)` expands to
///
/// ```text
/// impl<S: Storage> Add for Expr<'_, S> { fn add(self, other: Self) -> Self { self.with(self.tape().add(self.var, other.var)) } }
/// ```
///
/// and to the same for `&Expr` and `Expr`, `Expr` and `&Expr`, `&Expr` and `&Expr`.
macro_rules! operators {
    ($($trait:ident, $method:ident);+) => {$(
        impl<S: Storage> $trait for Expr<'_, S> {
            type Output = Self;
            #[track_caller]
            fn $method(self, other: Self) -> Self {
                let var = self.tape().$method(self.var, other.var);
                self.with(var)
            }
        }
        impl<'t, S: Storage> $trait<&Self> for Expr<'t, S> {
            type Output = Self;
            #[track_caller]
            fn $method(self, other: &Self) -> Self {
                $trait::$method(self, *other)
            }
        }
        impl<'t, S: Storage> $trait<Expr<'t, S>> for &Expr<'t, S> {
            type Output = Expr<'t, S>;
            #[track_caller]
            fn $method(self, other: Expr<'t, S>) -> Expr<'t, S> {
                $trait::$method(*self, other)
            }
        }
        impl<'t, S: Storage> $trait for &Expr<'t, S> {
            type Output = Expr<'t, S>;
            #[track_caller]
            fn $method(self, other: Self) -> Expr<'t, S> {
                $trait::$method(*self, *other)
            }
        }
    )+};
}

operators!(Add, add; Sub, sub; Mul, mul; Div, div);

/// An operator with a number of type `$number` on the right or on the left, for expressions by value or by reference:
/// `with_numbers!(f32: Add, add)` expands to
///
/// ```text
/// impl<S: Storage<Backend: Backend<Elem = f32>>> Add<f32> for Expr<'_, S> { fn add(self, number: f32) -> Self { self + self.number(number) } }
/// ```
///
/// and to the same for `f32` and `Expr`, `&Expr` and `f32`, `f32` and `&Expr`.
macro_rules! with_numbers {
    ($($number:ty: $trait:ident, $method:ident);+) => {$(
        impl<S: Storage<Backend: Backend<Elem = $number>>> $trait<$number> for Expr<'_, S> {
            type Output = Self;
            #[track_caller]
            fn $method(self, number: $number) -> Self {
                $trait::$method(self, self.number(number))
            }
        }
        impl<'t, S: Storage<Backend: Backend<Elem = $number>>> $trait<$number> for &Expr<'t, S> {
            type Output = Expr<'t, S>;
            #[track_caller]
            fn $method(self, number: $number) -> Expr<'t, S> {
                $trait::$method(*self, number)
            }
        }
        impl<'t, S: Storage<Backend: Backend<Elem = $number>>> $trait<Expr<'t, S>> for $number {
            type Output = Expr<'t, S>;
            #[track_caller]
            fn $method(self, expr: Expr<'t, S>) -> Expr<'t, S> {
                $trait::$method(expr.number(self), expr)
            }
        }
        impl<'t, S: Storage<Backend: Backend<Elem = $number>>> $trait<&Expr<'t, S>> for $number {
            type Output = Expr<'t, S>;
            #[track_caller]
            fn $method(self, expr: &Expr<'t, S>) -> Expr<'t, S> {
                $trait::$method(self, *expr)
            }
        }
    )+};
}

with_numbers!(f32: Add, add; f32: Sub, sub; f32: Mul, mul; f32: Div, div);
with_numbers!(f64: Add, add; f64: Sub, sub; f64: Mul, mul; f64: Div, div);
