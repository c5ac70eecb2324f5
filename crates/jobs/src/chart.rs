//! A job as a chart of nodes and arrows. Structure only: where a node is drawn is for those who draw.

use schemars::JsonSchema;
use serde::ser::SerializeTuple;
use serde::{Serialize, Serializer};
use serde_with::skip_serializing_none;

use crate::entry::{AltWork, LoopWork, Work, WorkId};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChartGraph {
    pub nodes: Vec<ChartNode>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChartNode {
    pub id: usize,
    pub hint: Hint,
    pub label: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub arrows: Vec<ChartArrow>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartArrow {
    pub to: usize,
    pub loop_back: bool,
    pub label: Option<String>,
}

/// Meaning of a node: `["TaskNode", 3]` with the index of its task, or a name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(schema_with = "hint_schema")]
pub enum Hint {
    Task(WorkId),
    /// A task whose result decides where to go.
    Cond(WorkId),
    ParBegin,
    ParEnd,
    CondBegin,
    CondEnd,
    LoopEnd,
    AltEnd,
}

fn hint_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "anyOf": [
            {
                "type": "array",
                "prefixItems": [{ "enum": ["TaskNode", "CondNode"] }, { "type": "integer", "minimum": 0 }],
                "minItems": 2,
                "maxItems": 2,
            },
            { "enum": ["ParBegin", "ParEnd", "CondBegin", "CondEnd", "LoopEnd", "AltEnd"] },
        ],
    })
}

impl Serialize for Hint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pair = |serializer: S, name: &str, id: &WorkId| {
            let mut pair = serializer.serialize_tuple(2)?;
            pair.serialize_element(name)?;
            pair.serialize_element(id)?;
            pair.end()
        };
        match self {
            Hint::Task(id) => pair(serializer, "TaskNode", id),
            Hint::Cond(id) => pair(serializer, "CondNode", id),
            Hint::ParBegin => serializer.serialize_str("ParBegin"),
            Hint::ParEnd => serializer.serialize_str("ParEnd"),
            Hint::CondBegin => serializer.serialize_str("CondBegin"),
            Hint::CondEnd => serializer.serialize_str("CondEnd"),
            Hint::LoopEnd => serializer.serialize_str("LoopEnd"),
            Hint::AltEnd => serializer.serialize_str("AltEnd"),
        }
    }
}

/// Nodes at which arrows enter and leave a part of the chart.
#[derive(Debug, Clone, Copy)]
struct Ends {
    entry: usize,
    exit: usize,
}

pub fn chart(work: &Work) -> ChartGraph {
    let mut graph = ChartGraph::default();
    graph.build(work);
    graph
}

impl ChartGraph {
    fn node(&mut self, hint: Hint, label: Option<String>) -> usize {
        let id = self.nodes.len();
        self.nodes.push(ChartNode { id, hint, label, arrows: Vec::new() });
        id
    }

    fn arrow(&mut self, from: usize, to: usize) {
        self.nodes[from].arrows.push(ChartArrow { to, loop_back: false, label: None });
    }

    fn choice(&mut self, from: usize, to: usize, when: bool) {
        self.nodes[from].arrows.push(ChartArrow { to, loop_back: false, label: Some(when.to_string()) });
    }

    fn build(&mut self, work: &Work) -> Ends {
        match work {
            Work::Ref(task) => {
                let label = match &task.model_override {
                    Some(model) => format!("{} ({model})", task.task_id),
                    None => task.task_id.clone(),
                };
                let node = self.node(Hint::Task(task.work_id_in_job), Some(label));
                Ends { entry: node, exit: node }
            }
            Work::Seq(seq) => self.sequence(&seq.works),
            Work::Par(par) => {
                let begin = self.node(Hint::ParBegin, None);
                let parts: Vec<Ends> = par.works.iter().map(|work| self.build(work)).collect();
                let end = self.node(Hint::ParEnd, None);
                for part in parts {
                    self.arrow(begin, part.entry);
                    self.arrow(part.exit, end);
                }
                Ends { entry: begin, exit: end }
            }
            Work::Loop(work) => self.repeat(work),
            Work::Alt(work) => self.choose(work),
        }
    }

    fn sequence(&mut self, works: &[Work]) -> Ends {
        let parts: Vec<Ends> = works.iter().map(|work| self.build(work)).collect();
        for pair in parts.windows(2) {
            self.arrow(pair[0].exit, pair[1].entry);
        }
        match (parts.first(), parts.last()) {
            (Some(first), Some(last)) => Ends { entry: first.entry, exit: last.exit },
            // Validation lets no empty sequence through; a chart of one is a mark that nothing happens.
            _ => {
                let node = self.node(Hint::CondEnd, None);
                Ends { entry: node, exit: node }
            }
        }
    }

    /// A work whose result decides. A sequence gets a frame, so that one sees where the decision is made.
    fn condition(&mut self, work: &Work) -> Ends {
        match work {
            Work::Seq(seq) if seq.works.len() > 1 => {
                let begin = self.node(Hint::CondBegin, None);
                let inner = self.sequence(&seq.works);
                let end = self.node(Hint::CondEnd, None);
                self.arrow(begin, inner.entry);
                self.arrow(inner.exit, end);
                Ends { entry: begin, exit: end }
            }
            _ => {
                let ends = self.build(work);
                let node = &mut self.nodes[ends.entry];
                if let (Hint::Task(id), true) = (node.hint, ends.entry == ends.exit) {
                    node.hint = Hint::Cond(id);
                }
                ends
            }
        }
    }

    fn repeat(&mut self, work: &LoopWork) -> Ends {
        let pre = work.pre_condition.as_ref().map(|(expected, work)| (*expected, self.condition(work)));
        let body = self.build(&work.body);
        let post = work.post_condition.as_ref().map(|(expected, work)| (*expected, self.condition(work)));
        let end = self.node(Hint::LoopEnd, None);
        let start = pre.map_or(body.entry, |(_, pre)| pre.entry);
        if let Some((expected, pre)) = pre {
            self.choice(pre.exit, body.entry, expected);
            self.choice(pre.exit, end, !expected);
        }
        match post {
            Some((expected, post)) => {
                self.arrow(body.exit, post.entry);
                let label = Some(expected.to_string());
                self.nodes[post.exit].arrows.push(ChartArrow { to: start, loop_back: true, label });
                self.choice(post.exit, end, !expected);
            }
            None => self.arrow(body.exit, end),
        }
        Ends { entry: start, exit: end }
    }

    fn choose(&mut self, work: &AltWork) -> Ends {
        let condition = self.condition(&work.condition);
        let branches = [(true, &work.true_work), (false, &work.false_work)]
            .map(|(when, branch)| (when, branch.as_ref().map(|work| self.build(work))));
        let end = self.node(Hint::AltEnd, None);
        for (when, branch) in branches {
            match branch {
                Some(branch) => {
                    self.choice(condition.exit, branch.entry, when);
                    self.arrow(branch.exit, end);
                }
                None => self.choice(condition.exit, end, when),
            }
        }
        Ends { entry: condition.entry, exit: end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    fn drawn(graph: &ChartGraph) -> String {
        let mut out = String::new();
        for node in &graph.nodes {
            out.push_str(&format!("{} {}", node.id, serde_json::to_string(&node.hint).unwrap()));
            if let Some(label) = &node.label {
                out.push_str(&format!(" {label}"));
            }
            for arrow in &node.arrows {
                let back = if arrow.loop_back { " back" } else { "" };
                let label = arrow.label.as_deref().map(|label| format!(" {label}")).unwrap_or_default();
                out.push_str(&format!(" ->{}{label}{back}", arrow.to));
            }
            out.push('\n');
        }
        out
    }

    #[track_caller]
    fn check(work: Value, expected: Expect) {
        let mut work: Work = serde_json::from_value(work).unwrap();
        work.simplify();
        work.assign_work_ids();
        expected.assert_eq(&drawn(&chart(&work)));
    }

    fn task(name: &str) -> Value {
        json!({ "kind": "Ref", "taskId": name })
    }

    #[test]
    fn a_loop_with_both_conditions_around_parallel_work() {
        let c = json!({ "kind": "Ref", "taskId": "c", "modelOverride": { "category": "driving" } });
        let work = json!({
            "kind": "Loop",
            "preCondition": [true, task("a")],
            "postCondition": [false, { "kind": "Seq", "works": [task("b"), c] }],
            "body": { "kind": "Par", "works": [task("d"), { "kind": "Seq", "works": [task("e"), task("f")] }] },
        });
        check(
            work,
            expect![[r#"
                0 ["CondNode",0] a ->1 true ->10 false
                1 "ParBegin" ->2 ->3
                2 ["TaskNode",3] d ->5
                3 ["TaskNode",4] e ->4
                4 ["TaskNode",5] f ->5
                5 "ParEnd" ->6
                6 "CondBegin" ->7
                7 ["TaskNode",1] b ->8
                8 ["TaskNode",2] c (driving) ->9
                9 "CondEnd" ->0 false back ->10 true
                10 "LoopEnd"
            "#]],
        );
    }

    #[test]
    fn a_choice_without_one_of_its_branches() {
        check(
            json!({ "kind": "Alt", "condition": task("a"), "falseWork": task("b") }),
            expect![[r#"
                0 ["CondNode",0] a ->2 true ->1 false
                1 ["TaskNode",1] b ->2
                2 "AltEnd"
            "#]],
        );
    }

    #[test]
    fn a_loop_without_conditions_is_its_body() {
        check(
            json!({ "kind": "Loop", "body": task("a") }),
            expect![[r#"
                0 ["TaskNode",0] a ->1
                1 "LoopEnd"
            "#]],
        );
    }

    #[test]
    fn an_arrow_says_whether_it_leads_back_and_nothing_that_it_has_not() {
        let graph = chart(&serde_json::from_value(json!({ "kind": "Loop", "body": task("a") })).unwrap());
        let expected = json!({ "nodes": [
            { "id": 0, "hint": ["TaskNode", 0], "label": "a", "arrows": [{ "to": 1, "loopBack": false }] },
            { "id": 1, "hint": "LoopEnd" },
        ] });
        assert_eq!(serde_json::to_value(graph).unwrap(), expected);
    }
}
