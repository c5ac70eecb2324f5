//! `grep` (for some models `rg`): the lines of files that match an expression.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use hangar_agent::interned;
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec};
use ignore::types::{Types, TypesBuilder};
use serde_json::json;

use super::lines::{FileSink, SearchMode, SearchOutput};
use super::walk::{HeldRoot, NameFilter, Root, SearchLimit, files, places, roots};
use crate::answer;
use crate::arguments;
use crate::held_paths::HeldPaths;
use crate::inspected::InspectedCalls;
use crate::workspace::Workspace;

/// Lines of context on either side.
const CONTEXT_LIMIT: usize = 1000;

/// Bytes held of one file: a line, or for expressions over several lines all of it.
const HEAP_LIMIT: usize = 64 * 1024 * 1024;

/// Bytes of a compiled expression, and of the tables made while searching with it.
const EXPRESSION_LIMIT: usize = 10 * 1024 * 1024;

pub struct Grep {
    spec: Arc<ToolSpec>,
    workspace: Arc<Workspace>,
    inspected: Arc<InspectedCalls>,
}

struct Arguments {
    pattern: String,
    paths: Vec<String>,
    mode: SearchMode,
    glob: Option<String>,
    kind: Option<String>,
    ignore_case: bool,
    before: usize,
    after: usize,
    numbered: bool,
    head_limit: Option<usize>,
    multiline: bool,
}

impl Grep {
    /// `name` is `grep`, or `rg` for models that were taught that.
    pub fn new(name: &str, workspace: Arc<Workspace>) -> Self {
        Self {
            spec: interned::spec(ToolSpec {
                name: name.to_owned(),
                title: Some("Searching files".to_owned()),
                description:
                    "Searches the content of files with a regular expression (Rust syntax: no look-around). \
                              Files excluded by .gitignore are not searched unless named in `paths`."
                        .to_owned(),
                input: ToolSchema::function(schema()),
            }),
            workspace,
            inspected: Arc::default(),
        }
    }
}

fn schema() -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "The regular expression."},
            "paths": {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                "description": "Directories or files to search, one or several. Leave it out to search the working \
                                directory."
            },
            "output_mode": {
                "type": "string",
                "enum": ["content", "files_with_matches", "count"],
                "description": "`files_with_matches` (the default) gives paths, `content` the matching lines, `count` \
                                the number of them in each file."
            },
            "glob": {"type": "string", "description": "Only files whose path matches: \"*.ts\", \"src/**/*.{js,jsx}\"."},
            "type": {"type": "string", "description": "Only files of this type: \"rust\", \"py\", \"js\"."},
            "-i": {"type": "boolean", "description": "Ignore case."},
            "-A": {"type": "number", "description": "Lines to show after each match (content)."},
            "-B": {"type": "number", "description": "Lines to show before each match (content)."},
            "-C": {"type": "number", "description": "Lines to show on both sides of each match (content)."},
            "-n": {"type": "boolean", "description": "Show line numbers (content). On by default."},
            "head_limit": {"type": "number", "description": "Stop after this many results."},
            "multiline": {"type": "boolean", "description": "Let a match span several lines."}
        },
        "required": ["pattern"]
    })
}

impl Tool for Grep {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        let roots = roots(&self.workspace, &parse(call)?.paths);
        self.inspected.remember(&call.call_id, places(&roots).hold());
        Ok(Access::Needs(Box::new(super::access(&self.workspace, call, &roots, |shown: &Path| {
            let kind = if shown.is_file() { "file" } else { "directory" };
            format!("Search in {kind}: {}", shown.display())
        }))))
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let workspace = Arc::clone(&self.workspace);
        let inspected = Arc::clone(&self.inspected);
        let stop = SearchLimit::new(context.cancel.clone());
        let name = self.spec.name.clone();
        Box::pin(answer::looking(context.cancel, move || {
            let text = parse(&call).and_then(|arguments| {
                let roots = roots(&workspace, &arguments.paths);
                let places = inspected.confirm(&call.call_id, &places(&roots))?;
                search(&arguments, &roots, &places, &stop)
            });
            match text {
                Ok(text) => ToolOutcome::success(workspace.spill.fit(text, &name)),
                Err(answer) => answer,
            }
        }))
    }
}

fn parse(call: &ToolInput) -> Result<Arguments, ToolOutcome> {
    arguments::read(call, |a| {
        let around = a.count("-C", 0);
        let mut context = |name| a.count(name, 0).or(around).unwrap_or(0).min(CONTEXT_LIMIT);
        let (before, after) = (context("-B"), context("-A"));
        Arguments {
            pattern: a.required_text("pattern"),
            paths: a.texts("paths", "path"),
            mode: a.word("output_mode").unwrap_or_default(),
            glob: a.optional_text("glob"),
            kind: a.optional_text("type"),
            ignore_case: a.flag("-i"),
            before,
            after,
            numbered: a.optional_flag("-n").unwrap_or(true),
            head_limit: a.count("head_limit", 1),
            multiline: a.flag("multiline"),
        }
    })
}

fn failed(message: String) -> ToolOutcome {
    let text = format!("Error: {message}");
    answer::failed(message, text)
}

fn search(
    arguments: &Arguments,
    roots: &[Root],
    places: &HeldPaths,
    stop: &SearchLimit,
) -> Result<String, ToolOutcome> {
    let query = Query::new(arguments)?;
    let mut present = Vec::new();
    let mut absent = Vec::new();
    for root in roots {
        match HeldRoot::new(root, places) {
            Some(root) => present.push(root),
            None => absent.push(root.given.display().to_string()),
        }
    }
    let absent = absent.join(", ");
    if present.is_empty() {
        return Err(failed(format!("Search paths do not exist: {absent}")));
    }
    let output = query.search(&present, arguments, stop);
    if stop.is_cancelled() {
        return Err(answer::interrupted());
    }
    let mut text = output.text;
    if text.is_empty() {
        text.push_str("No matches found.");
    }
    if output.full {
        text.push_str("\n\n(Warning: Not all matches are listed: there were too many)");
    } else if stop.is_late() {
        text.push_str("\n\n(Warning: Not all matches are listed: the search took too long)");
    }
    if !absent.is_empty() {
        let _ =
            write!(text, "\n\n(Warning: Some search paths were skipped because they do not exist: {absent})");
    }
    Ok(text)
}

/// The expression to search for, and the files to search.
struct Query {
    matcher: RegexMatcher,
    filter: Option<NameFilter>,
    types: Option<Types>,
}

impl Query {
    fn new(arguments: &Arguments) -> Result<Self, ToolOutcome> {
        let bad_name = |error: ignore::Error| failed(format!("rg: {error}"));
        Ok(Self {
            matcher: matcher(arguments)?,
            filter: arguments.glob.as_deref().map(NameFilter::new).transpose().map_err(bad_name)?,
            types: arguments.kind.as_deref().map(types).transpose().map_err(bad_name)?,
        })
    }

    fn search(&self, roots: &[HeldRoot<'_>], arguments: &Arguments, stop: &SearchLimit) -> SearchOutput {
        let has_context = arguments.mode == SearchMode::Content && arguments.before + arguments.after > 0;
        let mut output =
            SearchOutput::new(arguments.mode, arguments.numbered, has_context, arguments.head_limit);
        let mut searcher = searcher(arguments);
        let found = roots
            .iter()
            .flat_map(|root| files(root, self.filter.as_ref(), stop).map(move |file| (root, file)));
        for (root, file) in found {
            if self.types.as_ref().is_some_and(|types| types.matched(&file.real, false).is_ignore()) {
                continue;
            }
            searcher.set_binary_detection(match file.is_root {
                true => BinaryDetection::convert(0),
                false => BinaryDetection::quit(0),
            });
            let Ok(content) = root.open(&file) else { continue };
            let sink = FileSink::new(&mut output, stop, &file.shown, file.is_root);
            // A file that cannot be read or is too large is passed over, as a search of a directory does.
            let _ = searcher.search_reader(&self.matcher, Stoppable { content, stop }, sink);
            if output.is_done() {
                break;
            }
        }
        output
    }
}

fn matcher(arguments: &Arguments) -> Result<RegexMatcher, ToolOutcome> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(arguments.ignore_case)
        .multi_line(true)
        .size_limit(EXPRESSION_LIMIT)
        .dfa_size_limit(EXPRESSION_LIMIT);
    if !arguments.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&arguments.pattern).map_err(|error| {
        let hint = if error.to_string().contains("\"\\n\" is not allowed") {
            "\n\nSet multiline to true to match line ends."
        } else {
            ""
        };
        failed(format!("rg: {error}{hint}"))
    })
}

fn searcher(arguments: &Arguments) -> Searcher {
    let mut builder = SearcherBuilder::new();
    builder.line_number(true).multi_line(arguments.multiline).heap_limit(Some(HEAP_LIMIT));
    if arguments.mode == SearchMode::Content {
        builder.before_context(arguments.before).after_context(arguments.after);
    }
    builder.build()
}

fn types(kind: &str) -> Result<Types, ignore::Error> {
    let kind = match kind {
        "tsx" => "ts",
        "jsx" => "js",
        kind => kind,
    };
    TypesBuilder::new().add_defaults().select(kind).build()
}

/// A file whose reading ends when the search does, however large it is.
struct Stoppable<'a> {
    content: File,
    stop: &'a SearchLimit,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_due() {
            return Err(io::Error::other("stopped"));
        }
        self.content.read(buffer)
    }
}
