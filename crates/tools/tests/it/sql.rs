//! `sql`.

use expect_test::{Expect, expect};
use hangar_agent::tool::{ToolContext, ToolStatus};
use hangar_protocol::Body;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::bench::Bench;

async fn check(bench: &Bench, query: &str, expected: Expect) {
    bench.check("sql", json!({"description": "test", "query": query}), expected).await;
}

#[tokio::test]
async fn todos_are_kept() {
    let bench = Bench::new(&[]);
    check(
        &bench,
        "INSERT INTO todos (id, title) VALUES ('a', 'A'), ('b', 'B')",
        expect!["2 row(s) inserted. Last inserted row ID: 2."],
    )
    .await;
    check(&bench, "UPDATE todos SET status = 'done' WHERE id = 'a'", expect!["1 row(s) updated."]).await;
    check(
        &bench,
        "INSERT INTO todo_deps VALUES ('b', 'a')",
        expect!["1 row(s) inserted. Last inserted row ID: 1."],
    )
    .await;
    check(
        &bench,
        "SELECT id, title, description, status FROM todos ORDER BY id",
        expect![[r#"
        2 row(s) returned:

        | id | title | description | status |
        | --- | --- | --- | --- |
        | a | A | NULL | done |
        | b | B | NULL | pending |"#]],
    )
    .await;
    check(&bench, "DELETE FROM todo_deps", expect!["1 row(s) deleted."]).await;
    check(&bench, "SELECT * FROM todos WHERE id = 'zzz'", expect!["Query returned 0 rows."]).await;
}

#[tokio::test]
async fn rules_of_the_tables_hold() {
    let bench = Bench::new(&[]);
    check(&bench, "INSERT INTO todos (id, title, status) VALUES ('a', 'A', 'bogus')", expect!["Failure (Error: CHECK constraint failed: status IN ('pending', 'in_progress', 'done', 'blocked')): SQL Error: Error: CHECK constraint failed: status IN ('pending', 'in_progress', 'done', 'blocked')"]).await;
    check(
        &bench,
        "INSERT INTO todo_deps VALUES ('x', 'y')",
        expect![
            "Failure (Error: FOREIGN KEY constraint failed): SQL Error: Error: FOREIGN KEY constraint failed"
        ],
    )
    .await;
    check(
        &bench,
        "SELECT * FROM nosuch",
        expect!["Failure (Error: no such table: nosuch): SQL Error: Error: no such table: nosuch"],
    )
    .await;
    check(
        &bench,
        "SELEC 1",
        expect![[
            r#"Failure (Error: near "SELEC": syntax error): SQL Error: Error: near "SELEC": syntax error"#
        ]],
    )
    .await;
    check(&bench, " -- nothing", expect!["Failure (Empty query provided): Error: Empty query provided."])
        .await;
}

#[tokio::test]
async fn several_statements_are_answered_one_by_one() {
    let bench = Bench::new(&[]);
    check(
        &bench,
        "CREATE TABLE t(a); INSERT INTO t VALUES (1); SELECT a FROM t; DROP TABLE t;",
        expect![[r#"
        Executed 4 statement(s):

        1. CREATE
           Schema operation completed successfully.

        2. INSERT
           1 row(s) inserted. Last inserted row ID: 1.

        3. SELECT
           1 row(s) returned:
           
           | a |
           | --- |
           | 1 |

        4. DROP
           Schema operation completed successfully."#]],
    )
    .await;
    check(
        &bench,
        "INSERT INTO todos(id, title) VALUES('c', 'C'); INSERT INTO nosuch VALUES(1); SELECT 1",
        expect![[r#"
        Failure: SQL Error after statement 2 (INSERT): Error: no such table: nosuch

        Completed 1 statement(s) before failure:

        1. INSERT
           1 row(s) inserted. Last inserted row ID: 1."#]],
    )
    .await;
    check(&bench, "SELECT id FROM todos", expect!["1 row(s) returned:\n\n| id |\n| --- |\n| c |"]).await;
}

#[tokio::test]
async fn values_are_written_plainly() {
    let bench = Bench::new(&[]);
    check(
        &bench,
        "SELECT 1 AS a, NULL AS b, 2.5 AS c, 'x|y' AS d, x'00ff' AS e",
        expect![[r#"
        1 row(s) returned:

        | a | b | c | d | e |
        | --- | --- | --- | --- | --- |
        | 1 | NULL | 2.5 | x|y | x'00ff' |"#]],
    )
    .await;
    check(
        &bench,
        "INSERT INTO todos(id, title) VALUES('e', 'E') RETURNING id, status",
        expect![[r#"
        1 row(s) inserted. Last inserted row ID: 1.

        1 row(s) returned:

        | id | status |
        | --- | --- |
        | e | pending |"#]],
    )
    .await;
    check(
        &bench,
        "SELECT name FROM pragma_table_info('todo_deps')",
        expect!["2 row(s) returned:\n\n| name |\n| --- |\n| todo_id |\n| depends_on |"],
    )
    .await;
}

#[tokio::test]
async fn a_transaction_ends_with_its_call() {
    let bench = Bench::new(&[]);
    check(
        &bench,
        "BEGIN; INSERT INTO todos(id, title) VALUES('a', 'A'); COMMIT",
        expect![[r#"
        Executed 3 statement(s):

        1. BEGIN
           Query executed successfully. Rows affected: 0.

        2. INSERT
           1 row(s) inserted. Last inserted row ID: 1.

        3. COMMIT
           Query executed successfully. Rows affected: 0."#]],
    )
    .await;
    check(&bench, "BEGIN", expect!["Query executed successfully. Rows affected: 0.\nThe open transaction was rolled back: BEGIN and COMMIT belong in one call."]).await;
}

#[tokio::test]
async fn the_database_reaches_no_other_file() {
    let bench = Bench::new(&[]);
    check(&bench, "SELECT 1; ATTACH DATABASE 'x.db' AS x", expect![[r#"Failure (Blocked SQL statement: "ATTACH" is not allowed for security reasons.): Error: Blocked SQL statement: "ATTACH" is not allowed for security reasons."#]]).await;
    check(&bench, "VACUUM main INTO 'copy.db'", expect![[r#"Failure (Blocked SQL statement: "VACUUM INTO" is not allowed for security reasons.): Error: Blocked SQL statement: "VACUUM INTO" is not allowed for security reasons."#]]).await;
    check(
        &bench,
        "PRAGMA writable_schema = 1",
        expect!["Failure (Error: not authorized): SQL Error: Error: not authorized"],
    )
    .await;
    check(
        &bench,
        "PRAGMA temp_store_directory = '/'",
        expect!["Failure (Error: not authorized): SQL Error: Error: not authorized"],
    )
    .await;
    check(&bench, "SELECT load_extension('x')", expect!["Failure (Error: not authorized to use function: load_extension): SQL Error: Error: not authorized to use function: load_extension"]).await;
    check(
        &bench,
        "EXPLAIN ATTACH 'x.db' AS x",
        expect!["Failure (Error: not authorized): SQL Error: Error: not authorized"],
    )
    .await;
    check(&bench, "UPDATE sqlite_master SET sql = 'x'", expect!["Failure (Error: table sqlite_master may not be modified): SQL Error: Error: table sqlite_master may not be modified"]).await;
}

#[tokio::test]
async fn results_are_bounded() {
    let bench = Bench::new(&[]);
    let count = |n: usize| {
        format!(
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {n}) SELECT x FROM c"
        )
    };
    let text = bench.call("sql", &json!({"description": "many", "query": count(3000)})).await.outcome.text;
    assert!(text.starts_with("Output too large to read at once (25.3 KB). Saved to: "), "{}", &text[..100]);
    assert!(text.contains("\n3000 row(s) returned:\n\n| x |\n| --- |\n| 1 |"));
    let text = bench.call("sql", &json!({"description": "many", "query": count(20_000)})).await.outcome.text;
    let saved =
        std::fs::read_to_string(text.lines().next().unwrap().split_once("Saved to: ").unwrap().1).unwrap();
    assert!(
        saved.starts_with("20000 row(s)") && saved.ends_with("| 10000 |\n(only the first 10000 are listed)")
    );
    check(
        &bench,
        "SELECT zeroblob(100000000)",
        expect!["Failure (Error: string or blob too big): SQL Error: Error: string or blob too big"],
    )
    .await;
}

#[tokio::test]
async fn a_query_without_end_stops_when_cancelled() {
    let bench = Bench::new(&[]);
    let (progress, _events) = mpsc::channel(1);
    let context = ToolContext {
        grant: hangar_agent::permissions::Grant::Full,
        cancel: CancellationToken::new(),
        hurry: CancellationToken::new(),
        progress,
    };
    let cancel = context.cancel.clone();
    let query = "INSERT INTO todos(id, title) VALUES('a', 'A'); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    let input = bench.input(&json!({"description": "endless", "query": query}));
    let running = tokio::spawn(bench.tool("sql").run(input, context));
    // The first statement is under way once there is a file to keep it in.
    while !bench.base().join("session/session.db").exists() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert_eq!(running.await.unwrap().status, ToolStatus::Interrupted);
    // The connection is usable again.
    check(&bench, "SELECT 1 AS one", expect!["1 row(s) returned:\n\n| one |\n| --- |\n| 1 |"]).await;
}

#[tokio::test]
async fn changed_todos_are_announced() {
    let bench = Bench::new(&[]);
    let announced = async |query: &str| {
        let answer = bench.call("sql", &json!({"description": "x", "query": query})).await;
        assert_eq!(answer.outcome.status, ToolStatus::Success, "{query}: {}", answer.outcome.text);
        answer.events.iter().filter(|event| matches!(event, Body::TodosChanged(_))).count()
    };
    assert_eq!(announced("CREATE TABLE other(a); INSERT INTO other VALUES (1)").await, 0);
    assert_eq!(
        announced(
            "INSERT INTO todos(id, title) VALUES('a', 'A'); INSERT INTO todos(id, title) VALUES('b', 'B')"
        )
        .await,
        1
    );
    assert_eq!(announced("SELECT * FROM todos").await, 0);
    assert_eq!(announced("UPDATE todos SET status = 'done' WHERE id = 'none'").await, 0);
    assert_eq!(announced("INSERT INTO todo_deps VALUES ('a', 'b')").await, 1);
    assert_eq!(announced("DELETE FROM todo_deps").await, 1);
}

#[tokio::test]
async fn a_description_is_required() {
    let bench = Bench::new(&[]);
    bench
        .check(
            "sql",
            json!({}),
            expect![[r#"
        Failure (Multiple validation errors:
        - "description": Required
        - "query": Required): Invalid input: Multiple validation errors:
        - "description": Required
        - "query": Required"#]],
        )
        .await;
    assert_eq!(bench.inspect("sql", &json!({"description": "x", "query": "SELECT 1"})), "nothing");
}
