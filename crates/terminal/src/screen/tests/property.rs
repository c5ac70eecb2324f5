//! Any sequence of commits, keys, resizes and overlays: each row is there once, in order, and the shell's lines stay.

use proptest::prelude::*;

use super::*;

const MIN_COLUMNS: usize = 20;
const MAX_COLUMNS: usize = 60;
/// Highest tail.
const TAIL: usize = 4;

/// Bounds of the tails of a run.
#[derive(Debug, Clone, Copy)]
struct Tails {
    /// Rows are narrower than this.
    width: usize,
    /// Lowest screen: it holds the tail, whatever the terminal does to it, and one more row.
    screen: usize,
}

const SHORT: Tails = Tails { width: MIN_COLUMNS, screen: TAIL + 1 };
const WIDE: Tails = Tails { width: MAX_COLUMNS + 5, screen: TAIL * MAX_COLUMNS.div_ceil(MIN_COLUMNS) + 1 };

#[derive(Debug, Clone)]
enum Step {
    /// A frame: widths of the committed rows and of the tail's rows, the cursor, and the height of an overlay.
    Draw(Picture),
    /// A character at the end of the tail's last row.
    Key(char),
    /// Sizes that the terminal takes one after the other before it is quiet.
    Resize(Vec<(usize, usize)>),
    /// A size that the terminal takes while frames are still drawn for the old one; the rows of the tail are short then.
    Unseen((usize, usize), Vec<Picture>),
    /// Ctrl+Z, a line of the shell, and back.
    Suspend,
    /// A command of the user's that prints a line itself.
    Command,
    Redraw,
}

#[derive(Debug, Clone)]
struct Picture {
    commit: Vec<usize>,
    tail: Vec<usize>,
    cursor: Option<(usize, usize)>,
    overlay: Option<usize>,
}

fn size(tails: Tails) -> impl Strategy<Value = (usize, usize)> {
    (MIN_COLUMNS..=MAX_COLUMNS, tails.screen..24usize)
}

fn picture(tail_width: usize, overlay: bool) -> impl Strategy<Value = Picture> {
    (
        prop::collection::vec(0..150usize, 0..4),
        prop::collection::vec(0..tail_width, 0..=TAIL),
        prop::option::weighted(0.8, (0..TAIL, 0..MAX_COLUMNS)),
        if overlay { prop::option::weighted(0.2, 0..30usize).boxed() } else { Just(None).boxed() },
    )
        .prop_map(|(commit, tail, cursor, overlay)| Picture { commit, tail, cursor, overlay })
}

fn step(tails: Tails) -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => picture(tails.width, true).prop_map(Step::Draw),
        3 => prop::char::range('a', 'z').prop_map(Step::Key),
        3 => prop::collection::vec(size(tails), 1..4).prop_map(Step::Resize),
        2 => (size(tails), prop::collection::vec(picture(MIN_COLUMNS - 1, false), 1..4))
            .prop_map(|(size, pictures)| Step::Unseen(size, pictures)),
        1 => Just(Step::Suspend),
        1 => Just(Step::Command),
        1 => Just(Step::Redraw),
    ]
}

/// A session and its expected screen.
struct Model {
    session: Session,
    /// Lines of the shell, committed rows and output of commands, in order.
    expected: Vec<String>,
    /// Committed rows that an overlay holds back.
    held: Vec<String>,
    frame: Frame,
    count: usize,
    tails: Tails,
}

impl Model {
    fn new((columns, rows): (usize, usize), caps: ScreenCaps, shell: usize, tails: Tails) -> Self {
        let mut model = Self {
            session: Session::new(columns, rows, caps),
            expected: vec!["$ one".to_owned(), "$ two".to_owned()],
            held: Vec::new(),
            frame: Frame::default(),
            count: 0,
            tails,
        };
        for _ in 0..shell {
            model.print("$ more");
        }
        model
    }

    /// A text of a width that no other row has.
    fn text(&mut self, kind: char, width: usize) -> String {
        self.count += 1;
        let mut text = format!("{kind}{}.", self.count);
        // Some committed rows are of wide characters, which do not fit evenly at the right edge.
        let filler = if kind == 'c' && width.is_multiple_of(5) { '漢' } else { '-' };
        while Row::plain(text.as_str()).width() < width {
            text.push(filler);
        }
        text
    }

    fn draw(&mut self, picture: &Picture) {
        let commit: Vec<String> = picture.commit.iter().map(|width| self.text('c', *width)).collect();
        let tail: Vec<Row> = picture.tail.iter().map(|width| Row::plain(self.text('t', *width))).collect();
        let overlay = picture.overlay.map(|height| {
            (0..height).map(|row| Row::plain(format!("overlay {row} {}", self.count))).collect()
        });
        self.held.extend(commit.iter().cloned());
        self.frame = Frame {
            commit: commit.into_iter().map(|text| Row::plain(text).unwrapped()).collect(),
            cursor: picture.cursor.map(|(row, column)| (row.min(tail.len().saturating_sub(1)), column)),
            tail,
            overlay,
            title: None,
        };
        self.show();
    }

    fn show(&mut self) {
        let frame = std::mem::take(&mut self.frame);
        self.session.draw(&frame);
        if frame.overlay.is_none() {
            self.expected.append(&mut self.held);
        }
        self.frame = Frame { commit: Vec::new(), ..frame };
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Draw(picture) => self.draw(picture),
            Step::Key(key) => {
                let (row, column) = (self.frame.tail.len(), self.frame.tail.last().map_or(0, Row::width));
                if let Some(last) = self.frame.tail.last_mut()
                    && column + 1 < self.tails.width
                {
                    last.push(Span::plain(key.to_string()));
                    self.frame.cursor = Some((row - 1, column + 1));
                }
                self.show();
            }
            Step::Resize(sizes) => {
                for (columns, rows) in sizes {
                    self.session.resize(*columns, *rows);
                }
                self.show();
            }
            Step::Unseen((columns, rows), pictures) => {
                let short =
                    Picture { commit: vec![], tail: vec![9, 19, 3], cursor: Some((1, 19)), overlay: None };
                self.draw(&short);
                self.session.terminal.resize(*columns, *rows);
                for picture in pictures {
                    let cursor = picture.cursor.map(|(row, column)| (row, column.min(MIN_COLUMNS - 1)));
                    self.draw(&Picture { cursor, ..picture.clone() });
                }
                self.session.screen.resize(*columns, *rows);
                self.show();
            }
            Step::Suspend => {
                let bytes = self.session.screen.suspend();
                self.session.feed(bytes);
                self.expected.append(&mut self.held);
                self.print("$ fg");
                let (columns, rows) = self.session.terminal.size();
                self.session.screen.resume(columns, rows);
                self.show();
            }
            Step::Command => {
                self.frame.overlay = None;
                self.show();
                let bytes = self.session.screen.clear_tail();
                self.session.feed(bytes);
                self.print("output");
                self.show();
            }
            Step::Redraw => {
                self.session.screen.invalidate();
                self.show();
            }
        }
    }

    fn print(&mut self, what: &str) {
        self.count += 1;
        let line = format!("{what} {}", self.count);
        self.session.feed(format!("{line}\r\n").into_bytes());
        self.expected.push(line);
    }

    /// Everything that was printed once, in order, and the tail below it. Gaps are allowed where an overlay was
    /// resized.
    fn check(&self) {
        let overlay = self.frame.overlay.is_some();
        let (columns, _) = self.session.terminal.size();
        let tail = if overlay { &[][..] } else { &self.frame.tail };
        let mut expected = self.expected.clone();
        expected.extend(tail.iter().map(|row| row.clipped(columns).text()));
        let clean = |lines: Vec<String>| -> Vec<String> {
            lines.into_iter().map(|line| squeezed(&line)).filter(|line| !line.is_empty()).collect()
        };
        assert_eq!(clean(self.session.lines()), clean(expected));
        let cursor = self.session.terminal.cursor();
        assert_eq!(cursor.visible, self.frame.cursor.is_some());
        if let Some((row, column)) = self.frame.cursor
            && !overlay
        {
            let text = self.session.terminal.screen().line(cursor.row).unwrap().text();
            let shown = tail.get(row).map(|row| row.clipped(columns).text()).unwrap_or_default();
            assert_eq!((text.trim_end(), cursor.col), (shown.as_str(), column.min(columns - 1)));
        }
    }
}

/// A line without the blanks that the emulator puts before a wide character that does not fit.
fn squeezed(line: &str) -> String {
    if line.contains('漢') { line.replace(' ', "") } else { line.to_owned() }
}

fn check(first: (usize, usize), caps: ScreenCaps, shell: usize, tails: Tails, steps: &[Step]) {
    let mut model = Model::new(first, caps, shell, tails);
    for step in steps {
        model.apply(step);
        model.check();
    }
    model.frame.overlay = None;
    model.show();
    model.check();
}

fn steps(tails: Tails) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(tails), 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn short_tails_are_right_everywhere(
        first in size(SHORT), sync: bool, reflow: bool, shell in 0..30usize, steps in steps(SHORT),
    ) {
        // Whether the terminal reflows does not matter to them.
        check(first, ScreenCaps { sync, reflow, ..CAPS }, shell, SHORT, &steps);
    }

    // Below a screen full of lines. Near the top of an empty one the emulator moves rows that it wraps into its scrollback, where no
    // program can reach them.
    #[test]
    fn wide_tails_are_right_where_the_terminal_reflows(
        first in size(WIDE), sync: bool, steps in steps(WIDE),
    ) {
        check(first, ScreenCaps { sync, ..CAPS }, 30, WIDE, &steps);
    }
}
