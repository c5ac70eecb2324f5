//! A transcript as one HTML page: readable without a network, in a light and a dark theme. Nothing of a model, a tool or a file is
//! taken over as markup.

mod markdown;

use std::fmt::Write as _;

use hangar_protocol::Event;
use hangar_transcript::{
    AskBlock, AskKind, Block, BlockBody, Lane, NoticeBlock, NoticeLevel, ToolBlock, ToolState, Transcript,
    UserBlock, VerdictOutcome, tool_words,
};

use crate::ansi::{self, SgrState};
use crate::gate;

/// Agents within agents whose work is shown.
const DEEPEST: usize = 8;

/// Styles of the page. It loads nothing.
const STYLE: &str = include_str!("page.css");

/// Page of a session, from its events.
#[derive(Default)]
pub struct HtmlPage {
    transcript: Transcript,
}

impl HtmlPage {
    pub fn add(&mut self, event: &Event) {
        self.transcript.apply(event);
    }

    /// The whole page. `name` stands for a session without a title.
    pub fn finish(self, name: &str) -> String {
        let title = escaped(self.transcript.title().unwrap_or(name));
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
             'unsafe-inline'\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        );
        if let Some(model) = self.transcript.model() {
            let _ = writeln!(out, "<p class=\"facts\">{}</p>", escaped(model));
        }
        self.lane(self.transcript.main(), 0, &mut out);
        out.push_str("</main>\n</body>\n</html>\n");
        out
    }

    fn lane(&self, lane: &Lane, depth: usize, out: &mut String) {
        for (_, block) in lane.blocks() {
            if block.rewound {
                out.push_str("<div class=\"rewound\">\n");
            }
            self.block(block, depth, out);
            if block.rewound {
                out.push_str("</div>\n");
            }
        }
    }

    fn block(&self, block: &Block, depth: usize, out: &mut String) {
        match &block.body {
            BlockBody::User(prompt) => user(prompt, out),
            BlockBody::Text(text) => {
                out.push_str("<section class=\"answer\">\n");
                markdown::write(&text.text, out);
                out.push_str("</section>\n");
            }
            BlockBody::Reasoning(text) => {
                out.push_str("<details class=\"reasoning\"><summary>Reasoning</summary>\n");
                markdown::write(&text.text, out);
                out.push_str("</details>\n");
            }
            BlockBody::Tool(call) => self.tool(call, depth, out),
            BlockBody::Ask(ask) => question(ask, out),
            BlockBody::Notice(told) => notice(told, out),
        }
    }

    fn tool(&self, call: &ToolBlock, depth: usize, out: &mut String) {
        let words = tool_words(&call.name, &call.args);
        let state = match call.state {
            ToolState::Ok => "ok",
            ToolState::Failed => "failed",
            ToolState::Writing | ToolState::Queued | ToolState::Running => "open",
        };
        let object = escaped(words.object.lines().next().unwrap_or_default());
        let _ = write!(
            out,
            "<details class=\"tool {state}\"><summary><b>{}</b> <code>{object}</code>",
            escaped(&words.verb)
        );
        if let Some(code) = call.exit_code.filter(|code| *code != 0) {
            let _ = write!(out, " <span class=\"failed\">exit code {code}</span>");
        }
        if let Some(verdict) = &call.verdict
            && matches!(verdict.outcome, VerdictOutcome::Denied | VerdictOutcome::Cancelled)
        {
            let why = verdict.detail.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            let _ = write!(out, " <span class=\"failed\">not allowed{}</span>", escaped(&why));
        }
        out.push_str("</summary>\n");
        let arguments = match call.args.get("command").and_then(|command| command.as_str()) {
            Some(command) => command.to_owned(),
            None if call.args.is_null() => String::new(),
            None => serde_json::to_string_pretty(&call.args).unwrap_or_default(),
        };
        preformatted("arguments", &arguments, out);
        match &call.diff {
            Some(diff) => difference(diff, out),
            None => preformatted("output", &without_colours(&call.output), out),
        }
        if let Some(error) = &call.error {
            preformatted("failed", error, out);
        }
        for picture in &call.pictures {
            let _ = writeln!(
                out,
                "<p class=\"facts\">[image: {}, {} KB]</p>",
                escaped(&picture.mime_type),
                picture.bytes.div_ceil(1024)
            );
        }
        let agent = call.agent.as_ref().filter(|_| depth < DEEPEST);
        if let Some(lane) = agent.and_then(|agent| self.transcript.agent(&agent.id)) {
            out.push_str("<div class=\"agent\">\n");
            self.lane(lane, depth + 1, out);
            out.push_str("</div>\n");
        }
        out.push_str("</details>\n");
    }
}

fn user(prompt: &UserBlock, out: &mut String) {
    let class = if prompt.source.is_some() { "prompt of-others" } else { "prompt" };
    let _ = write!(out, "<section class=\"{class}\"><pre>{}</pre>", escaped(prompt.text.trim_end()));
    for name in &prompt.attachments {
        let _ = write!(out, "<p class=\"facts\">+ {}</p>", escaped(name));
    }
    out.push_str("</section>\n");
}

fn question(ask: &AskBlock, out: &mut String) {
    let asked = match ask.ask {
        // The call says what became of it.
        AskKind::Permission => return,
        AskKind::Question => "question",
        AskKind::Elicitation => "message",
        AskKind::Plan => "planContent",
    };
    out.push_str("<section class=\"question\">\n");
    markdown::write(ask.data[asked].as_str().unwrap_or_default(), out);
    let answer = match (ask.outcome, ask.detail.as_deref()) {
        (Some(VerdictOutcome::Answered | VerdictOutcome::Approved), Some(detail)) => detail,
        (Some(VerdictOutcome::Answered), None) => "answered",
        (Some(VerdictOutcome::Approved), None) => "approved",
        (Some(VerdictOutcome::Denied), detail) => detail.unwrap_or("declined"),
        (Some(VerdictOutcome::Cancelled) | None, _) => "not answered",
    };
    let _ = writeln!(out, "<p>→ {}</p>\n</section>", escaped(answer));
}

fn notice(told: &NoticeBlock, out: &mut String) {
    let class = match told.level {
        NoticeLevel::Info | NoticeLevel::Good => "notice",
        NoticeLevel::Warning => "notice warning",
        NoticeLevel::Error => "notice failed",
    };
    let detail = told.detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
    let _ = writeln!(out, "<p class=\"{class}\">{}{}</p>", escaped(told.text.trim()), escaped(&detail));
}

fn preformatted(class: &str, text: &str, out: &mut String) {
    let text = text.trim_end();
    if !text.is_empty() {
        let _ = writeln!(out, "<pre class=\"{class}\">{}</pre>", escaped(text));
    }
}

/// A unified diff, line by line.
fn difference(text: &str, out: &mut String) {
    out.push_str("<pre class=\"diff\">");
    for line in text.lines() {
        let class = match line.as_bytes().first() {
            Some(b'+') => "added",
            Some(b'-') => "removed",
            Some(b'@') => "place",
            _ => "same",
        };
        let _ = writeln!(out, "<span class=\"{class}\">{}</span>", escaped(line));
    }
    out.push_str("</pre>\n");
}

/// Output of a tool without the sequences of a terminal.
fn without_colours(text: &str) -> String {
    let mut state = SgrState::default();
    let lines = gate::lines(text).map(|line| {
        let spans = ansi::spans(line, &mut state);
        spans.into_iter().map(|span| span.text.to_string()).collect::<String>()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Text that no browser reads as markup, with marks for characters that deceive.
pub(super) fn escaped(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        for char in gate::visible(line).chars() {
            match char {
                '&' => made.push_str("&amp;"),
                '<' => made.push_str("&lt;"),
                '>' => made.push_str("&gt;"),
                '"' => made.push_str("&quot;"),
                '\'' => made.push_str("&#39;"),
                char => made.push(char),
            }
        }
        made.push_str(end);
    }
    made
}

#[cfg(test)]
mod tests;
