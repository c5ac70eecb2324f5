//! The queue of this home: one log that all processes of the home share, and the slots that it grants.
//!
//! [`log`] is the file and its lock; [`scheduler`] is the handle by which work waits for slots; [`view`] is the queue as
//! command line and API show it. The decisions are those of `hangar_scheduler`.

pub mod log;
pub mod scheduler;
pub mod view;

pub use hangar_scheduler::budget::{BudgetKind, BudgetScope};
pub use log::QueueError;
pub use scheduler::{Scheduler, SchedulerConfig, Slot, WorkListener, WorkNews};
pub use view::{BudgetShown, QueueItem, QueueMode, QueueView};
