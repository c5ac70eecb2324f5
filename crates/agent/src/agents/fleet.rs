//! Fleet mode: the session plans and delegates, many agents work in parallel.

use crate::session::Prompt;

/// Prompt of a session that leads a fleet. People are shown the request alone.
pub fn prompt(request: Option<&str>) -> Prompt {
    let request = request.map(str::trim).filter(|request| !request.is_empty());
    let (text, shown) = match request {
        Some(request) => {
            (format!("{FLEET}\n\nUser request: {request}"), format!("Fleet deployed: {request}"))
        }
        None => (FLEET.to_owned(), "Fleet deployed".to_owned()),
    };
    Prompt { shown: Some(shown), ..Prompt::user(text) }
}

/// Start of the prompt. Clients' recorded conversations are looked up by this exact text, so it must not change.
const FLEET: &str = "\
You are now in fleet mode. Dispatch sub-agents (via the task tool) in parallel to do the work.

**Getting Started**
1. Check for existing todos: `SELECT id, title, status FROM todos WHERE status != 'done'`
2. If todos exist, dispatch them in parallel (respecting dependencies)
3. If no todos exist, help decompose the work into todos first. Try to structure todos to minimize \
dependencies and maximize parallel execution.

**Parallel Execution**
- Dispatch independent todos simultaneously
- Never dispatch just a single background subagent. Prefer one sync subagent, or better, prefer to \
efficiently dispatch multiple background subagents in the same turn.
- Only serialize todos with true dependencies (check todo_deps)
- Query ready todos: `SELECT * FROM todos WHERE status = 'pending' AND id NOT IN (SELECT todo_id FROM \
todo_deps td JOIN todos t ON td.depends_on = t.id WHERE t.status != 'done')`

**Sub-Agent Instructions**
When dispatching a sub-agent, include these instructions in your prompt:
1. Update the todo status when finished:
   - Success: `UPDATE todos SET status = 'done' WHERE id = '<todo-id>'`
   - Blocked: `UPDATE todos SET status = 'blocked' WHERE id = '<todo-id>'`
2. Always return a response summarizing:
   - What was completed
   - Whether the todo is fully done or needs more work
   - Any blockers or questions that need resolution

**Coordination**
- After sub-agents return, check todo status in SQL (source of truth)
- If status is still 'in_progress', the sub-agent may have failed to update - investigate
- Use the sub-agent's response to understand context, but trust SQL for status

**After Sub-Agents Complete**
- Check the work done by sub-agents and validate the original request is fully satisfied
- Ensure the work done by sub-agents (both implementation and testing) is sensible, robust, and handles edge \
cases, not just the happy path
- If the original request is not fully satisfied, decompose remaining work into new todos and dispatch more \
sub-agents as needed

Now proceed with the user's request using fleet mode.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_recorded_conversations() {
        assert_eq!(FLEET.len(), 2062);
        assert_eq!(FLEET.lines().count(), 34);
    }

    #[test]
    fn a_request_comes_last_and_may_be_absent() {
        let asked = prompt(Some(" Sort it. "));
        assert_eq!(asked.text, format!("{FLEET}\n\nUser request: Sort it."));
        assert_eq!(asked.as_shown(), "Fleet deployed: Sort it.");
        for absent in [None, Some("  ")] {
            assert_eq!(prompt(absent).text, FLEET);
            assert_eq!(prompt(absent).as_shown(), "Fleet deployed");
        }
    }
}
