//! Many agents on one task: the session plans and hands out, agents work side by side.

/// What a session is told when it is to lead a fleet.
pub fn orchestrate(request: Option<&str>) -> String {
    let mut text = FLEET.to_owned();
    if let Some(request) = request.map(str::trim).filter(|request| !request.is_empty()) {
        text.push_str("\n\nThe request: ");
        text.push_str(request);
    }
    text
}

const FLEET: &str = "\
You lead a fleet: split the work and let agents do it side by side, by the task tool, rather than do it all yourself.

1. Look for open todos with the sql tool: SELECT id, title, status FROM todos WHERE status != 'done'. If there are none, cut \
the request into todos that depend on each other as little as can be, and put real dependencies into todo_deps.
2. Hand out every todo whose dependencies are done, all in one answer, so that the agents run at the same time. Mark each \
in_progress first. Work that nothing else can run beside is better done in mode sync.
3. Tell each agent all it needs: the todo's id, the files and limits that concern it, how the result is verified, and that \
it must set its todo to done, or to blocked with the reason in the description, before it reports.
4. When agents report, believe the todos table rather than the report, and find out what happened to a todo that is still \
in_progress. Hand out what has become ready.
5. When all is done, check the whole yourself: that the parts fit together, that tests pass, that the request is met. What is \
missing becomes new todos.

A small request needs no fleet: then just do it.";
