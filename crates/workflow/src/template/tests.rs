use serde_json::{Value, json};

use super::*;

fn context() -> Value {
    json!({
        "issue": {
            "identifier": "A-1", "title": "Mend it", "description": "", "labels": ["bug", "ui"], "priority": 2,
            "parent": null, "url": "https://x/1", "state": "To Do",
            "blocked_by": [{"identifier": "A-2", "state": "Open"}, {"identifier": "A-3", "state": ""}],
        },
        "attempt": 0,
        "run": {"turn_number": 1, "max_turns": 5, "is_continuation": false},
    })
}

#[track_caller]
fn check(text: &str, rendered: &str) {
    let template = Template::parse(text, None).unwrap();
    assert_eq!(template.render(&context()).unwrap(), rendered, "{text}");
}

#[track_caller]
fn fails(text: &str, line: usize, words: &str) {
    let error =
        Template::parse(text, None).and_then(|template| template.render(&context()).map(drop)).unwrap_err();
    assert_eq!(error.line, line, "{error}");
    assert!(error.message.contains(words), "{error}");
}

#[test]
fn go_prints_fields_and_chooses_by_emptiness() {
    check("**{{ .issue.identifier }}**: {{.issue.title}}", "**A-1**: Mend it");
    check("{{ if .issue.description }}d{{ else if .attempt }}a{{ else }}-{{ end }}", "-");
    check("{{ if not .run.is_continuation }}first{{ end }}", "first");
    check("{{ if and .issue.url (eq .issue.priority 2) }}y{{ end }}", "y");
    check("{{ with .issue.labels }}{{ . }}{{ end }}", "[bug ui]");
    check("{{/* a comment with }} is gone */}}x", "x");
}

#[test]
fn go_loops_with_and_without_variables() {
    check(
        "{{ range .issue.blocked_by }}- {{ .identifier }}{{ if .state }} ({{ .state }}){{ end }}\n{{ end }}",
        "- A-2 (Open)\n- A-3\n",
    );
    check("{{ range $i, $l := .issue.labels }}{{ if $i }}, {{ end }}{{ $l }}{{ end }}", "bug, ui");
    check("{{ range .issue.labels }}{{ $.issue.identifier }}{{ break }}{{ end }}", "A-1");
    check("{{ range .issue.parent }}x{{ else }}none{{ end }}", "none");
}

#[test]
fn go_has_the_functions_that_workflows_use() {
    check("{{ .issue.labels | join \", \" }}", "bug, ui");
    check("{{ .issue.title | lower }}", "mend it");
    check("{{ toJSON .issue.labels }}", "[\"bug\",\"ui\"]");
    check(
        "{{ len .issue.labels }} {{ index .issue.labels 1 }} {{ printf \"%s/%d\" .issue.state 3 }}",
        "2 ui To Do/3",
    );
    check("{{ $x := .issue.priority }}{{ if gt $x 1 }}urgent{{ end }}", "urgent");
}

#[test]
fn go_trims_where_an_action_says_so() {
    check("a  {{- if true }}  b  {{ end -}}  c", "a  b  c");
    check("a\n{{ if true -}}\n b\n{{- end }}", "a\nb");
}

#[test]
fn liquid_prints_chooses_and_loops() {
    check("{{ issue.identifier }} {{ issue.labels | join: ', ' }}", "A-1 bug, ui");
    check("{% if attempt == 0 %}first{% elsif attempt %}again{% endif %}", "first");
    check("{% unless run.is_continuation %}new{% endunless %}", "new");
    check(
        "{% for b in issue.blocked_by %}{{ forloop.index }}{{ b.identifier }}{% unless forloop.last %},{% endunless %}{% endfor %}",
        "1A-2,2A-3",
    );
    check("{% case issue.state %}{% when 'Done', 'To Do' %}t{% else %}e{% endcase %}", "t");
    check("{% for l in issue.labels reversed offset:1 %}{{ l }}{% else %}none{% endfor %}", "ui");
    check(
        "{% assign x = issue.title | upcase %}{{ x }}{% capture y %}<{{ x }}>{% endcapture %}{{ y }}",
        "MEND IT<MEND IT>",
    );
    check("{% if issue.labels contains 'bug' and issue.labels.size == 2 %}y{% endif %}", "y");
    check("{% raw %}{{ x }}{% endraw %}{% comment %}it's gone{% endcomment %}", "{{ x }}");
    check("a {%- if true -%} b {%- endif -%} c", "abc");
    check("{% if issue.parent %}p{% else %}-{% endif %}{{ issue.nothing | default: 'd' }}", "-d");
    check("{% for i in (1..3) %}{{ i | times: 2 }}{% endfor %}", "246");
}

#[test]
fn unknown_variables_fields_functions_and_filters_are_errors_with_lines() {
    fails("a\n{{ .issue.nothing }}", 2, ".issue.nothing");
    fails("{{ .issue.parent.identifier }}", 1, ".issue.parent.identifier");
    fails("\n\n{{ shout .issue.title }} {{ .x }}", 3, "`shout` is not defined");
    fails("{{ $x }}{{ .issue.title }}", 1, "$x");
    fails("a\n{{ nothing }}", 2, "`nothing`");
    fails("{{ issue.title | shout }}", 1, "filter `shout`");
    fails("x\n{% if issue.title %}", 2, "endif");
    fails("{% frob %}", 1, "`frob`");
    fails("{{ .issue.title", 1, "no end");
    fails("{{ if .issue.title }}", 1, "end");
    fails("{{ end }}", 1, "closes nothing");
    fails("{{ .issue.title }}{{ template \"x\" }}", 1, "not supported");
}

#[test]
fn the_language_is_that_of_the_first_tag() {
    for (text, language) in [
        ("no tag", Language::Go),
        ("{{ .x }}", Language::Go),
        ("{{- if .x }}", Language::Go),
        ("{{/* c */}} {{ issue.x }}", Language::Go),
        ("{{ issue.x }}", Language::Liquid),
        ("{ {% if x %}", Language::Liquid),
        ("{{ toJSON .x }}", Language::Go),
    ] {
        assert_eq!(Language::of(text), language, "{text}");
    }
}

#[test]
fn fields_that_do_not_exist_are_found_without_rendering() {
    let found = |text: &str| -> Vec<(usize, &str)> {
        let template = Template::parse(text, None).unwrap();
        shape::check(&template).iter().map(|found| (found.line, found.check)).collect()
    };
    assert_eq!(found("{{ if .attempt }}\n{{ .issue.titel }}{{ end }}"), [(2, "unknown_field")]);
    assert_eq!(found("{{ .isue.title }}"), [(1, "unknown_var")]);
    assert_eq!(
        found("{{ range .issue.blocked_by }}{{ .identifier }}{{ .issue }}{{ $.issue.id }}{{ end }}"),
        [(1, "unknown_field")]
    );
    assert_eq!(
        found("{% for b in issue.blocked_by %}{{ b.id }}{{ b.x }}{{ c }}{% endfor %}"),
        [(1, "unknown_field"), (1, "unknown_var")]
    );
    assert_eq!(found("{{ .ci_failure.check_runs }}{{ .review_comments }}{{ .run.turn_number }}"), []);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parsers_panic(text in "[{}%a-z.$|\"' \\-(),:\\[\\]if endrgfo\n]{0,60}") {
        for language in [Language::Go, Language::Liquid] {
            if let Ok(template) = Template::parse(&text, Some(language)) {
                let _ = template.render(&context());
                let _ = shape::check(&template);
            }
        }
    }
}
