//! A model's parameters and states by name: looking at them, setting them, freezing them.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::recorder::{Entry, Role};
use super::{Model, ModelError};
use crate::backend::{Backend, Real};
use crate::optim::{HEADER_LEN, ParamGroup};
use crate::shape::Shape;

/// A parameter or a state of a model.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'m, E> {
    pub(crate) entry: &'m Entry,
    /// Its elements.
    pub data: &'m [E],
    /// Its gradient, where it is trained.
    pub gradient: Option<&'m [E]>,
}

impl<'m, E> TensorView<'m, E> {
    /// Its name, such as `conv1.weight`.
    #[must_use]
    pub fn name(&self) -> &'m str {
        &self.entry.name
    }

    /// Its shape.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.entry.shape
    }

    /// Whether it is a parameter that is not trained.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.entry.role == Role::Frozen
    }

    /// Whether it is state, such as a running mean, rather than a parameter.
    #[must_use]
    pub fn is_state(&self) -> bool {
        self.entry.role == Role::State
    }
}

impl<B: Backend> Model<B> {
    /// All parameters and states, in the order in which their layers ask for them.
    pub fn tensors(&self) -> impl Iterator<Item = TensorView<'_, B::Elem>> {
        self.entries.iter().map(|entry| {
            let data = self.tape.value(entry.handle).get(entry.range()).unwrap_or_default();
            let gradient = if entry.role == Role::Trained { self.tape.gradient(entry.handle) } else { None };
            TensorView { entry, data, gradient }
        })
    }

    /// The parameters among them, trained and frozen.
    pub fn parameters(&self) -> impl Iterator<Item = TensorView<'_, B::Elem>> {
        self.tensors().filter(|tensor| !tensor.is_state())
    }

    /// Elements of all parameters, trained and frozen.
    #[must_use]
    pub fn parameter_count(&self) -> usize {
        self.parameters().map(|parameter| parameter.data.len()).sum()
    }

    /// The parameter or state of this name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_, B::Elem>> {
        self.tensors().find(|tensor| tensor.name() == name)
    }

    /// Gives a parameter or state these elements.
    ///
    /// # Errors
    /// When there is none of this name, or it has another number of elements.
    pub fn set(&mut self, name: &str, data: &[B::Elem]) -> Result<(), ModelError> {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| ModelError::Unknown { name: name.to_string() })?;
        let expected = entry.shape.len();
        match self.tape.value_mut(entry.handle).get_mut(entry.range()) {
            Some(value) if value.len() == data.len() => {
                value.copy_from_slice(data);
                Ok(())
            }
            _ => Err(ModelError::Length { name: name.to_string(), expected, found: data.len() }),
        }
    }

    /// Sets weight decay and learning-rate factor of the parameters whose name is `prefix` or starts with it and a dot; of
    /// all with an empty one. What the group leaves open stays.
    ///
    /// # Errors
    /// When there are none.
    pub fn set_group(&mut self, prefix: &str, group: ParamGroup) -> Result<(), ModelError> {
        let mut found = false;
        for entry in self.entries.iter_mut().filter(|entry| entry.role != Role::State && entry.is_within(prefix)) {
            let before = entry.group;
            entry.group = ParamGroup {
                learning_rate_factor: group.learning_rate_factor.or(before.learning_rate_factor),
                weight_decay: group.weight_decay.or(before.weight_decay),
            };
            if entry.role == Role::Trained {
                self.tape.set_group(entry.handle, group);
            }
            found = true;
        }
        if found { Ok(()) } else { Err(ModelError::Unknown { name: prefix.to_string() }) }
    }

    /// Excludes parameters from training: all whose name is `prefix` or starts with it and a dot; all with an empty one. What
    /// was recorded is dropped, and contexts have to be made anew.
    ///
    /// # Errors
    /// When there are none.
    pub fn freeze(&mut self, prefix: &str) -> Result<(), ModelError> {
        self.set_role(prefix, Role::Frozen)
    }

    /// The opposite of [`Model::freeze`]. The moments of these parameters start at 0.
    ///
    /// # Errors
    /// When there are none.
    pub fn unfreeze(&mut self, prefix: &str) -> Result<(), ModelError> {
        self.set_role(prefix, Role::Trained)
    }

    fn set_role(&mut self, prefix: &str, role: Role) -> Result<(), ModelError> {
        let chosen: Vec<bool> =
            self.entries.iter().map(|entry| entry.role != Role::State && entry.is_within(prefix)).collect();
        if !chosen.contains(&true) {
            return Err(ModelError::Unknown { name: prefix.to_string() });
        }
        self.set_roles(&chosen, role);
        Ok(())
    }

    /// Gives the chosen ones of all tensors another role.
    pub(crate) fn set_roles(&mut self, chosen: &[bool], role: Role) {
        let values: Vec<Vec<B::Elem>> = self.tensors().map(|tensor| tensor.data.to_vec()).collect();
        let params = self.tape.params().len();
        let slots = self.moments.len().saturating_sub(HEADER_LEN) / params.max(1);
        let (header, old) = self.moments.split_at(HEADER_LEN.min(self.moments.len()));
        // Each parameter's moments, slot by slot, as they were.
        let mut moments = header.to_vec();
        let mut starts = Vec::new();
        let mut start = 0;
        for entry in &self.entries {
            starts.push((entry.role == Role::Trained).then_some(start));
            start += if entry.role == Role::Trained { entry.shape.len() } else { 0 };
        }
        for (entry, _) in self.entries.iter_mut().zip(chosen).filter(|(_, chosen)| **chosen) {
            entry.role = role;
        }
        for slot in 0..slots {
            for (entry, start) in self.entries.iter().zip(&starts).filter(|(entry, _)| entry.role == Role::Trained) {
                let len = entry.shape.len();
                let before = start.and_then(|start| old.get(slot * params + start..slot * params + start + len));
                match before {
                    Some(before) => moments.extend_from_slice(before),
                    None => moments.resize(moments.len() + len, B::Elem::ZERO),
                }
            }
        }
        self.moments = moments;
        self.lay_out(|i, _, data| data.copy_from_slice(&values[i]));
    }

    /// Puts the elements of all parameters and states into `all`, one after the other.
    pub(crate) fn save_tensors(&self, all: &mut Vec<B::Elem>) {
        all.clear();
        self.tensors().for_each(|tensor| all.extend_from_slice(tensor.data));
    }

    /// The opposite; what `all` does not hold stays.
    pub(crate) fn load_tensors(&mut self, mut all: &[B::Elem]) {
        for entry in &self.entries {
            let Some((data, rest)) = all.split_at_checked(entry.shape.len()) else { return };
            if let Some(value) = self.tape.value_mut(entry.handle).get_mut(entry.range()) {
                value.copy_from_slice(data);
            }
            all = rest;
        }
    }
}
