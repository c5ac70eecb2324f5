//! Bindings of keys to actions. The defaults are Copilot's; a user's file can change them by the name of an action.

mod table;

use crate::composer::Edit;
use crate::key::Key;

/// Keys of the longest sequence that can be bound.
const SEQUENCE_LIMIT: usize = 3;

/// Action of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send the prompt; while the agent works, steer it.
    Send,
    Queue,
    /// Change the mode: interactive, plan, autopilot.
    Mode,
    /// Close the open popup or dialog, or cancel the current operation.
    Cancel,
    /// Stop the agent, or rewind if it is idle.
    Interrupt,
    /// Clear the prompt, or cancel the running work.
    Clear,
    Exit,
    Suspend,
    Redraw,
    Stash,
    Editor,
    HistorySearch,
    HistoryPrev,
    HistoryNext,
    PasteAttachment,
    ExpandRecent,
    ExpandAll,
    Reasoning,
    Search,
    PageUp,
    PageDown,
    Sidebar,
    NextTab,
    Help,
    /// Open the completions of the word at the cursor.
    Complete,
    AcceptCompletion,
    /// Accept the completion and send the prompt if it is then complete.
    SubmitCompletion,
    CompletionPrev,
    CompletionNext,
    CloseCompletion,
    /// Run a command while the draft stays.
    CommandBeside,
    Background,
    Goal,
    Hide,
    OpenLink,
    Voice,
    Close,
    Edit(Edit),
}

/// Situation in which a binding holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum When {
    Always,
    /// The prompt is empty.
    Empty,
    /// A popup of completions is open.
    Completing,
}

impl When {
    fn about(self) -> &'static str {
        match self {
            Self::Always => "",
            Self::Empty => "empty prompt",
            Self::Completing => "completions",
        }
    }
}

/// Situation in which a key is pressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyContext {
    pub empty: bool,
    pub completing: bool,
}

impl KeyContext {
    /// The situations whose bindings hold, the special ones first.
    fn whens(self) -> impl Iterator<Item = When> {
        let completing = self.completing.then_some(When::Completing);
        let empty = self.empty.then_some(When::Empty);
        completing.into_iter().chain(empty).chain([When::Always])
    }
}

/// Keys of an incomplete sequence. A caller that stops waiting for the rest resets it to the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingKeys {
    keys: Vec<Key>,
}

impl PendingKeys {
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn clear(&mut self) {
        self.keys.clear();
    }
}

/// Meaning of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyMeaning {
    Action(Action),
    /// The key begins a sequence and has no effect by itself.
    Pending,
    Insert(char),
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Binding {
    keys: Vec<Key>,
    when: When,
    action: Action,
}

/// Line of the help screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelpRow {
    pub keys: String,
    /// Situation in which the keys hold, empty for all.
    pub when: &'static str,
    pub name: &'static str,
    pub about: &'static str,
}

#[derive(Debug, Clone)]
pub struct Keymap {
    bindings: Vec<Binding>,
}

impl Default for Keymap {
    fn default() -> Self {
        let bindings = table::ACTIONS.iter().flat_map(default_bindings).collect();
        Self { bindings }
    }
}

fn default_bindings(entry: &'static table::KeymapEntry) -> impl Iterator<Item = Binding> {
    entry.keys.iter().filter_map(|keys| {
        let keys = Key::parse_all(keys).ok()?;
        Some(Binding { keys, when: entry.when, action: entry.action })
    })
}

impl Keymap {
    /// Default bindings with the changes of a user's file: pairs of an action's name and its keys.
    ///
    /// Keys are separated by commas, the keys of a sequence by blanks; `none` leaves the action without a key. The keys of an action
    /// replace all of its default ones.
    pub fn from_config(changes: &[(String, String)]) -> Result<Self, String> {
        let mut keymap = Self::default();
        for (name, _) in changes {
            let entry = entry(name)?;
            keymap.bindings.retain(|binding| (binding.action, binding.when) != (entry.action, entry.when));
        }
        for (name, keys) in changes {
            let entry = entry(name)?;
            if keys.trim() == "none" {
                continue;
            }
            for sequence in keys.split(',') {
                let keys = Key::parse_all(sequence).map_err(|error| format!("`{name}`: {error}"))?;
                let binding = Binding { keys, when: entry.when, action: entry.action };
                keymap.check(name, sequence.trim(), &binding)?;
                if !keymap.bindings.contains(&binding) {
                    keymap.bindings.push(binding);
                }
            }
        }
        Ok(keymap)
    }

    /// Refuses a binding that could not be pressed, or would take the keys of another.
    fn check(&self, name: &str, text: &str, new: &Binding) -> Result<(), String> {
        let Some(first) = new.keys.first() else {
            return Err(format!("`{name}` has no key; write `none` to leave it without one"));
        };
        if new.keys.len() > SEQUENCE_LIMIT {
            return Err(format!("`{name}`: `{text}` has more than {SEQUENCE_LIMIT} keys"));
        }
        if first.typed().is_some() && new.when == When::Always {
            return Err(format!("`{name}`: `{text}` types a character; add `ctrl+` or `alt+`"));
        }
        for old in self.bindings.iter().filter(|old| old.when == new.when && old.action != new.action) {
            let other = name_of(old.action, old.when);
            if old.keys == new.keys {
                return Err(format!(
                    "`{text}` is bound to both `{other}` and `{name}`; give `{other}` another key or `none`"
                ));
            }
            let (short, long) = if old.keys.len() < new.keys.len() { (old, new) } else { (new, old) };
            if long.keys.starts_with(&short.keys) && !is_repeat(&long.keys) {
                return Err(format!(
                    "`{}` of `{}` begins `{}` of `{}`; give one of them another key",
                    shown(&short.keys),
                    name_of(short.action, short.when),
                    shown(&long.keys),
                    name_of(long.action, long.when),
                ));
            }
        }
        Ok(())
    }

    /// Finds the meaning of a key after the ones that are pending.
    ///
    /// A key pressed twice can have a meaning of its own (`esc esc`): the first press acts at once, and the second does
    /// more.
    pub fn resolve(&self, pending: &mut PendingKeys, key: Key, context: KeyContext) -> KeyMeaning {
        let key = key.normalised();
        pending.keys.push(key);
        if let Some(resolved) = self.look_up(pending, context) {
            return resolved;
        }
        // A chord without a binding is swallowed with its last key; after a key that acted, the next one starts afresh.
        let acted = is_repeat(&pending.keys[..pending.keys.len() - 1]) && self.acts(&pending.keys[..1]);
        let in_chord = pending.keys.len() > 1 && !acted;
        pending.clear();
        if in_chord {
            return KeyMeaning::Nothing;
        }
        pending.keys.push(key);
        if let Some(resolved) = self.look_up(pending, context) {
            return resolved;
        }
        pending.clear();
        key.typed().map_or(KeyMeaning::Nothing, KeyMeaning::Insert)
    }

    fn look_up(&self, pending: &mut PendingKeys, context: KeyContext) -> Option<KeyMeaning> {
        let keys = &pending.keys;
        let action = context.whens().find_map(|when| {
            self.bindings.iter().find(|binding| binding.when == when && binding.keys == *keys)
        });
        let longer = context.whens().any(|when| {
            let mut bindings = self.bindings.iter().filter(|binding| binding.when == when);
            bindings.any(|binding| binding.keys.len() > keys.len() && binding.keys.starts_with(keys))
        });
        match action {
            Some(binding) => {
                if !longer {
                    pending.clear();
                }
                Some(KeyMeaning::Action(binding.action))
            }
            None => longer.then_some(KeyMeaning::Pending),
        }
    }

    /// Whether keys are bound in any situation.
    fn acts(&self, keys: &[Key]) -> bool {
        self.bindings.iter().any(|binding| binding.keys == keys)
    }

    /// Keys of an action, as they are shown.
    pub fn keys(&self, action: Action) -> Vec<String> {
        let bindings = self.bindings.iter().filter(|binding| binding.action == action);
        bindings.map(|binding| shown(&binding.keys)).collect()
    }

    /// Lines of the help screen, in the order of the table.
    pub fn rows(&self) -> Vec<HelpRow> {
        let mut rows = Vec::new();
        for entry in table::ACTIONS {
            let bindings = self
                .bindings
                .iter()
                .filter(|binding| (binding.action, binding.when) == (entry.action, entry.when));
            let keys: Vec<_> = bindings.map(|binding| shown(&binding.keys)).collect();
            if !keys.is_empty() {
                let keys = keys.join(", ");
                rows.push(HelpRow { keys, when: entry.when.about(), name: entry.name, about: entry.about });
            }
        }
        rows
    }
}

fn entry(name: &str) -> Result<&'static table::KeymapEntry, String> {
    table::ACTIONS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        format!("`{name}` is not an action; docs/terminal-commands.md lists them with their keys")
    })
}

fn name_of(action: Action, when: When) -> &'static str {
    let entry = table::ACTIONS.iter().find(|entry| (entry.action, entry.when) == (action, when));
    entry.map_or("another action", |entry| entry.name)
}

/// Whether a sequence is one key pressed again and again.
fn is_repeat(keys: &[Key]) -> bool {
    keys.first().is_some_and(|first| keys.iter().all(|key| key == first))
}

fn shown(keys: &[Key]) -> String {
    keys.iter().map(Key::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
