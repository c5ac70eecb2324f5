use expect_test::{Expect, expect};

use super::*;

/// A script of answers: `pick:ID`, `type:TEXT`, `esc`, and results of work.
fn check(variables: &[&str], script: &str, expected: Expect) {
    let offers = Offers {
        variables: variables.iter().map(|name| (*name).to_owned()).collect(),
        home: "~/.hangar".to_owned(),
        program: "hangar".to_owned(),
        ..Offers::default()
    };
    let (mut setup, mut next) = Setup::new(offers, true);
    for line in script.split_whitespace() {
        let (word, rest) = line.split_once(':').unwrap_or((line, ""));
        let known = || vec![ListedModel { id: "of-the-table".to_owned(), detail: "$1".to_owned() }];
        let problem = |is_refused| ListProblem { message: rest.to_owned(), is_refused, known: known() };
        next = match word {
            "pick" => setup.answer(HostAnswer::Picked(rest.to_owned())),
            "type" => setup.answer(HostAnswer::Typed(rest.to_owned())),
            "esc" => setup.answer(HostAnswer::Back),
            "found" => {
                let presets = rest.split(',').filter(|name| !name.is_empty());
                let server = |name| FoundServer { preset: preset(name).unwrap().name, models: 2 };
                setup.done(WorkDone::Local(presets.map(server).collect()))
            }
            "listed" => {
                let models = rest.split(',').filter(|name| !name.is_empty());
                let model = |id: &str| ListedModel { id: id.to_owned(), detail: String::new() };
                setup.done(WorkDone::Listed(Ok(models.map(model).collect())))
            }
            "refused" => setup.done(WorkDone::Listed(Err(problem(true)))),
            "unlisted" => setup.done(WorkDone::Listed(Err(problem(false)))),
            "works" => setup.done(WorkDone::Probed { works: true, says: rest.to_owned() }),
            "fails" => setup.done(WorkDone::Probed { works: false, says: rest.to_owned() }),
            other => panic!("{other} is no step"),
        };
    }
    expected.assert_eq(&told(&next));
}

fn told(next: &Next) -> String {
    match next {
        Next::Ask(question) => {
            let mut text = format!("{}\n", question.title);
            for part in &question.parts {
                match part {
                    BodyPart::Warning(told) => text.push_str(&format!("! {told}\n")),
                    BodyPart::Text(told) => text.push_str(&format!("{told}\n")),
                    other => panic!("{other:?}"),
                }
            }
            match &question.asks {
                HostAsk::Pick(items) => {
                    for item in items {
                        text.push_str(
                            format!("- {} | {}", item.label, item.detail).trim_end_matches([' ', '|']),
                        );
                        text.push('\n');
                    }
                }
                HostAsk::Text { hidden } => text.push_str(if *hidden { "(hidden)\n" } else { "(text)\n" }),
                HostAsk::Nothing => text.push_str("(nothing)\n"),
            }
            text
        }
        Next::Work(Work::FindLocal) => "find local servers".to_owned(),
        Next::Work(Work::List(draft)) => format!("list {} {:?} {:?}", draft.name, draft.base_url, draft.key),
        Next::Work(Work::Probe(draft, model)) => format!("probe {} {model}", draft.name),
        Next::Done(Outcome::Chosen { draft, model, says }) => {
            format!("chosen {}/{model} {:?}: {says}", draft.name, draft.key)
        }
        Next::Done(outcome) => format!("{outcome:?}"),
    }
}

#[test]
fn providers_whose_key_is_there_come_first() {
    check(
        &["OPENAI_API_KEY", "GROQ_API_KEY"],
        "",
        expect![[r#"
            Which model provider do you want to use?
            - OpenAI | OPENAI_API_KEY is set
            - Groq | GROQ_API_KEY is set
            - A model on this machine | Ollama, LM Studio, llama.cpp, vLLM
            - Anthropic
            - OpenRouter
            - Google Gemini
            - xAI
            - Mistral
            - DeepSeek
            - Kimi (Moonshot)
            - Qwen (DashScope)
            - GLM (Z.ai)
            - MiniMax
            - Azure OpenAI
            - Amazon Bedrock
            - Google Vertex AI
            - GitHub Copilot | needs a GitHub token
            - Another server | any that speaks OpenAI's API
            - Try it with the scripted model | a demo: it follows a script, no model answers
        "#]],
    );
    check(&["OPENAI_API_KEY"], "pick:openai", expect!["list openai None Usual"]);
}

#[test]
fn a_key_is_typed_or_named() {
    check(
        &[],
        "pick:anthropic",
        expect![[r#"
            How does Anthropic get its key?
            - I type or paste it | kept in a file that only you can read
            - From an environment variable | such as ANTHROPIC_API_KEY
            - From a file of mine
            - From a command that prints it | such as a password manager
        "#]],
    );
    check(
        &[],
        "pick:anthropic pick:typed",
        expect![[r#"
            The key
            It is kept in ~/.hangar/keys/anthropic, which only you can read.
            (hidden)
        "#]],
    );
    check(&[], "pick:anthropic pick:typed type:sk-1", expect!["list anthropic None Typed(TypedKey)"]);
    check(
        &["MINE"],
        "pick:anthropic pick:variable type:$MINE",
        expect![[r#"list anthropic None Variable("MINE")"#]],
    );
    check(&[], "pick:anthropic pick:command type:pass", expect![[r#"list anthropic None Command("pass")"#]]);
    check(
        &[],
        "pick:anthropic pick:variable type:MINE",
        expect![[r#"
            How does Anthropic get its key?
            ! MINE is not set in this terminal. Set it before you start hangar, or give the key in another way.
            - I type or paste it | kept in a file that only you can read
            - From an environment variable | such as ANTHROPIC_API_KEY
            - From a file of mine
            - From a command that prints it | such as a password manager
        "#]],
    );
}

#[test]
fn a_model_is_picked_and_asked() {
    let listed = "pick:anthropic pick:typed type:sk-1 listed:claude-a,claude-b";
    check(
        &[],
        listed,
        expect![[r#"
            Which model of Anthropic?
            - claude-a
            - claude-b
            - Another one | type its name
        "#]],
    );
    check(&[], &format!("{listed} pick:claude-b"), expect!["probe anthropic claude-b"]);
    check(
        &[],
        &format!("{listed} pick:claude-b works:fine"),
        expect!["chosen anthropic/claude-b Typed(TypedKey): fine"],
    );
    check(
        &[],
        &format!("{listed} pick:claude-b fails:no-tools"),
        expect![[r#"
            claude-b does not work as it should
            no-tools
            - Choose another model
            - Ask it again
            - Use it all the same
        "#]],
    );
    check(
        &[],
        &format!("{listed} pick:claude-b fails:no-tools pick:use"),
        expect!["chosen anthropic/claude-b Typed(TypedKey): no-tools"],
    );
    check(&[], &format!("{listed} pick:type type:claude-c"), expect!["probe anthropic claude-c"]);
}

#[test]
fn a_key_that_is_refused_is_asked_for_again() {
    check(
        &[],
        "pick:groq pick:typed type:sk-1 refused:401",
        expect![[r#"
            How does Groq get its key?
            ! 401
            - Type the key again | kept in a file that only you can read
            - From an environment variable | such as GROQ_API_KEY
            - From a file of mine
            - From a command that prints it | such as a password manager
        "#]],
    );
    check(
        &[],
        "pick:groq pick:typed type:sk-1 unlisted:timeout",
        expect![[r#"
            Groq did not list its models
            timeout
            - Ask again
            - of-the-table | $1
            - Another one | type its name
        "#]],
    );
}

#[test]
fn local_servers_are_asked_once_they_were_chosen() {
    check(&[], "pick:local", expect!["find local servers"]);
    check(
        &[],
        "pick:local found:ollama",
        expect![[r#"
            Which server?
            - Ollama | 2 models at http://localhost:11434/v1
            - Look again
            - At another address
        "#]],
    );
    check(&[], "pick:local found:ollama pick:ollama", expect!["list ollama None Usual"]);
    for step in ["pick:ollama", "pick:ollama listed:a", "pick:compatible"] {
        check(
            &[],
            &format!("pick:local found:ollama {step} esc"),
            expect![[r#"
                Which server?
                - Ollama | 2 models at http://localhost:11434/v1
                - Look again
                - At another address
            "#]],
        );
    }
    check(&[], "pick:local found:ollama pick:ollama listed:a esc esc esc", expect!["Left"]);
    check(&[], "pick:local found:ollama pick:ollama esc esc pick:compatible esc esc", expect!["Left"]);
    check(
        &[],
        "pick:local found:",
        expect![[r#"
            Which server?
            ! No server answered at the usual ports of this machine. Start one and look again, or give its address.
            - Look again
            - At another address
        "#]],
    );
    check(
        &[],
        "pick:local found: pick:compatible type:http://localhost:9/v1 pick:none",
        expect![[r#"list localhost-9 Some("http://localhost:9/v1") Usual"#]],
    );
}

#[test]
fn every_step_can_be_left() {
    check(&[], "esc", expect!["Left"]);
    for way in
        ["pick:anthropic esc", "pick:local esc", "pick:azure esc", "pick:copilot esc", "pick:compatible esc"]
    {
        check(&[], &format!("{way} esc"), expect!["Left"]);
    }
    let listed = "pick:anthropic pick:typed type:sk-1 listed:a,b";
    check(&[], &format!("{listed} esc type:sk-2"), expect!["list anthropic None Typed(TypedKey)"]);
    check(&[], &format!("{listed} esc esc esc esc"), expect!["Left"]);
    check(&[], &format!("{listed} pick:a esc esc esc esc esc"), expect!["Left"]);
    check(&[], &format!("{listed} pick:a fails:x esc esc esc esc esc"), expect!["Left"]);
    let server = "pick:compatible type:http://a/v1 pick:none listed:a";
    check(
        &[],
        &format!("{server} esc esc type:http://b/v1 pick:none"),
        expect![[r#"list b Some("http://b/v1") Usual"#]],
    );
    check(&[], &format!("{server} esc esc esc esc"), expect!["Left"]);
    check(&[], "pick:anthropic pick:typed esc esc esc", expect!["Left"]);
    // What was under way when the person left it comes to nothing.
    check(&[], &format!("{listed} pick:a esc works:late pick:b"), expect!["probe anthropic b"]);
}

#[test]
fn the_scripted_model_is_a_demo() {
    check(&[], "pick:scripted", expect!["Demo"]);
}

#[test]
fn github_needs_a_token() {
    check(
        &[],
        "pick:copilot",
        expect![[r#"
            GitHub Copilot
            hangar does not open GitHub's login page itself. Set COPILOT_GITHUB_TOKEN or GH_TOKEN to a token of an account with Copilot, or log in with `gh auth login`, and start hangar again.
            - Type or paste a token now
        "#]],
    );
    check(&[], "pick:copilot pick:typed type:gho_1", expect!["list copilot None Typed(TypedKey)"]);
}
