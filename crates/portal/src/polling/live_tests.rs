use std::future::Future;
use std::sync::Arc;

use proptest::prelude::*;
use tokio::task::JoinHandle;

use super::*;
use crate::polling::response::{SessionCallback as Call, SessionResponse};

const GRACE: Duration = Duration::from_secs(60);

fn log() -> Arc<PollLog<SessionResponse>> {
    Arc::new(PollLog::new(GRACE))
}

fn turn(number: usize) -> SessionResponse {
    Call::OnAgentStart { turn_id: number.to_string() }.into()
}

fn begin(id: &str) -> SessionResponse {
    Call::OnStartMessage { message_id: id.to_owned() }.into()
}

fn piece(id: &str, text: &str) -> SessionResponse {
    Call::OnMessage { message_id: id.to_owned(), delta: text.to_owned() }.into()
}

fn end(id: &str, text: &str) -> SessionResponse {
    Call::OnEndMessage { message_id: id.to_owned(), complete_content: text.to_owned() }.into()
}

fn token(name: &str) -> Reader {
    Reader::Token(name.to_owned())
}

fn spawn(log: &Arc<PollLog<SessionResponse>>, reader: Reader) -> JoinHandle<PollAnswer<SessionResponse>> {
    let log = Arc::clone(log);
    tokio::spawn(async move { log.read(reader).await })
}

/// Lets everybody who can go on do so, without time passing.
async fn settle() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

/// Time passes only when everybody waits.
fn run<F: Future>(test: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test)
}

#[test]
fn a_plain_call_takes_one_item_in_order() {
    run(async {
        let log = log();
        log.push(turn(1));
        log.push(turn(2));
        assert_eq!(log.read(Reader::Plain).await, PollAnswer::One(turn(1)));
        assert_eq!(log.read(Reader::Plain).await, PollAnswer::One(turn(2)));
    });
}

#[test]
fn a_call_that_comes_first_waits_for_the_item() {
    run(async {
        let log = log();
        let waiting = spawn(&log, Reader::Plain);
        settle().await;
        log.push(turn(1));
        assert_eq!(waiting.await.unwrap(), PollAnswer::One(turn(1)));
    });
}

#[test]
fn a_call_that_waits_in_vain_times_out_after_five_seconds_and_nothing_is_lost() {
    run(async {
        let log = log();
        let begun = Instant::now();
        assert_eq!(log.read(Reader::Plain).await, PollAnswer::TimedOut);
        assert_eq!(begun.elapsed(), PATIENCE);
        assert_eq!(log.read(token("a")).await, PollAnswer::TimedOut);
        log.push(turn(1));
        assert_eq!(log.read(Reader::Plain).await, PollAnswer::One(turn(1)));
    });
}

#[test]
fn a_second_call_is_refused_and_the_first_does_not_notice() {
    run(async {
        for reader in [Reader::Plain, token("a")] {
            let log = log();
            let waiting = spawn(&log, reader.clone());
            settle().await;
            assert_eq!(log.read(reader.clone()).await, PollAnswer::Parallel);
            let other = spawn(&log, token("b"));
            settle().await;
            assert!(!other.is_finished(), "another reader may wait too");
            log.push(turn(1));
            assert!(matches!(waiting.await.unwrap(), PollAnswer::One(_) | PollAnswer::Many(_)));
            other.abort();
        }
    });
}

#[test]
fn a_call_that_went_away_has_taken_nothing_and_blocks_nobody() {
    run(async {
        let log = log();
        let waiting = spawn(&log, Reader::Plain);
        settle().await;
        waiting.abort();
        settle().await;
        log.push(turn(1));
        assert_eq!(log.read(Reader::Plain).await, PollAnswer::One(turn(1)));
    });
}

#[test]
fn what_is_left_at_the_end_is_drained_then_closed_is_said_once() {
    run(async {
        let log = log();
        log.push(turn(1));
        log.close();
        log.push(turn(2));
        assert_eq!(log.read(Reader::Plain).await, PollAnswer::One(turn(1)));
        assert_eq!(log.read(Reader::Plain).await, PollAnswer::Closed);
        assert_eq!(log.read(Reader::Plain).await, PollAnswer::NotFound);
        assert_eq!(log.read(token("a")).await, PollAnswer::Many(vec![turn(1)]));
        assert_eq!(log.read(token("a")).await, PollAnswer::Closed);
        assert_eq!(log.read(token("a")).await, PollAnswer::NotFound);
    });
}

#[test]
fn the_end_answers_a_call_that_waits() {
    run(async {
        let log = log();
        let (plain, reader) = (spawn(&log, Reader::Plain), spawn(&log, token("a")));
        settle().await;
        let begun = Instant::now();
        log.close();
        assert_eq!(plain.await.unwrap(), PollAnswer::Closed);
        assert_eq!(reader.await.unwrap(), PollAnswer::Closed);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    });
}

#[test]
fn new_readers_come_until_the_grace_is_over_and_known_ones_may_finish() {
    run(async {
        let log = log();
        log.push(turn(1));
        assert_eq!(log.read(token("known")).await, PollAnswer::Many(vec![turn(1)]));
        log.push(turn(2));
        log.close();
        tokio::time::advance(GRACE - Duration::from_secs(1)).await;
        assert_eq!(log.read(token("late")).await, PollAnswer::Many(vec![turn(1), turn(2)]));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(log.read(token("later")).await, PollAnswer::NotFound);
        assert!(!log.is_done());
        for reader in ["known", "late"] {
            while log.read(token(reader)).await != PollAnswer::Closed {}
        }
        assert_eq!(
            log.read(Reader::Plain).await,
            PollAnswer::One(turn(1)),
            "nobody waits for this one in a hurry"
        );
        while log.read(Reader::Plain).await != PollAnswer::Closed {}
        assert!(log.is_done());
    });
}

#[test]
fn a_reader_with_a_token_is_not_answered_more_often_than_it_can_use() {
    run(async {
        let log = log();
        log.push(turn(1));
        assert_eq!(log.read(token("a")).await, PollAnswer::Many(vec![turn(1)]));
        let begun = Instant::now();
        let waiting = spawn(&log, token("a"));
        settle().await;
        tokio::time::advance(Duration::from_secs(2)).await;
        log.push(turn(2));
        tokio::time::advance(Duration::from_secs(1)).await;
        log.push(turn(3));
        assert_eq!(waiting.await.unwrap(), PollAnswer::Many(vec![turn(2), turn(3)]));
        assert_eq!(begun.elapsed(), PATIENCE);
        tokio::time::advance(PATIENCE).await;
        let waiting = spawn(&log, token("a"));
        settle().await;
        let begun = Instant::now();
        log.push(turn(4));
        assert_eq!(waiting.await.unwrap(), PollAnswer::Many(vec![turn(4)]));
        assert_eq!(begun.elapsed(), Duration::ZERO, "the last answer was long ago");
        log.push(turn(5));
        assert_eq!(
            log.read(token("a")).await,
            PollAnswer::Many(vec![turn(5)]),
            "what is there is given at once"
        );
    });
}

#[test]
fn pieces_are_put_together_for_tokens_alone() {
    run(async {
        let log = log();
        for item in [begin("m"), piece("m", "a"), piece("m", "b"), turn(1), piece("m", "c")] {
            log.push(item);
        }
        let together = vec![begin("m"), piece("m", "ab"), turn(1), piece("m", "c")];
        assert_eq!(log.read(token("a")).await, PollAnswer::Many(together));
        log.push(end("m", "abc"));
        assert_eq!(log.read(token("a")).await, PollAnswer::Many(vec![end("m", "abc")]));
        assert_eq!(log.read(token("b")).await, PollAnswer::Many(vec![begin("m"), turn(1), end("m", "abc")]));
        for expected in
            [begin("m"), piece("m", "a"), piece("m", "b"), turn(1), piece("m", "c"), end("m", "abc")]
        {
            assert_eq!(log.read(Reader::Plain).await, PollAnswer::One(expected));
        }
    });
}

#[test]
fn a_text_that_begins_again_keeps_the_pieces_of_its_new_beginning() {
    let items = vec![begin("m"), piece("m", "a"), end("m", "a"), begin("m"), piece("m", "b")];
    let expected = vec![begin("m"), end("m", "a"), begin("m"), piece("m", "b")];
    assert_eq!(put_together(items), expected);
}

#[test]
fn a_log_that_is_full_loses_pieces_first_and_then_the_oldest_and_says_so() {
    run(async {
        let log = log();
        let large = "x".repeat(MOST_BYTES / 8);
        log.push(begin("m"));
        log.push(piece("m", &large));
        log.push(end("m", "short"));
        for _ in 0..7 {
            log.push(piece("n", &large));
        }
        assert!(log.bytes() <= MOST_BYTES);
        assert_eq!(log.read(Reader::Plain).await, PollAnswer::One(begin("m")));
        assert_eq!(log.read(Reader::Plain).await, PollAnswer::One(end("m", "short")));
        log.push(piece("n", &large));
        log.push(turn(1));
        assert!(log.bytes() <= MOST_BYTES);
        assert_eq!(log.read(Reader::Plain).await, PollAnswer::One(SessionResponse::dropped()));
        let PollAnswer::Many(rest) = log.read(token("a")).await else { panic!("there is more") };
        assert_eq!(rest.first(), Some(&SessionResponse::dropped()));
        assert_eq!(rest.last(), Some(&turn(1)));
    });
}

#[test]
fn readers_are_few_and_the_longest_away_is_forgotten() {
    run(async {
        let log = log();
        log.push(turn(1));
        for number in 0..MOST_TOKENS + 10 {
            assert_eq!(log.read(token(&number.to_string())).await, PollAnswer::Many(vec![turn(1)]));
        }
        assert_eq!(log.state().readers.len(), MOST_TOKENS + 1);
        assert_eq!(log.read(token(&"x".repeat(LONGEST_TOKEN + 1))).await, PollAnswer::NotFound);
    });
}

/// Operation on a log.
#[derive(Debug, Clone)]
enum Step {
    Push(Shape),
    Call(u8),
    /// A call whose maker goes away.
    Desert(u8),
    Wait(u16),
    Close,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Whole,
    Begin(u8),
    Piece(u8),
    End(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let text = 0..2_u8;
    let shape = prop_oneof![
        2 => Just(Shape::Whole),
        1 => text.clone().prop_map(Shape::Begin),
        4 => text.clone().prop_map(Shape::Piece),
        1 => text.prop_map(Shape::End),
    ];
    prop_oneof![
        8 => shape.prop_map(Step::Push),
        8 => (0..3_u8).prop_map(Step::Call),
        1 => (0..3_u8).prop_map(Step::Desert),
        3 => (0..7000_u16).prop_map(Step::Wait),
        1 => Just(Step::Close),
    ]
}

fn reader(number: u8) -> Reader {
    if number == 0 { Reader::Plain } else { token(&number.to_string()) }
}

/// State of a client after the callbacks: everything but deltas, in order, and the texts that have not ended.
fn view(items: &[SessionResponse]) -> (Vec<SessionResponse>, Vec<(String, String)>) {
    let mut whole = Vec::new();
    let mut texts: Vec<(String, String)> = Vec::new();
    for item in items {
        match item {
            SessionResponse::Callback(Call::OnMessage { message_id, delta }) => {
                match texts.iter_mut().find(|(id, _)| id == message_id) {
                    Some((_, text)) => text.push_str(delta),
                    None => texts.push((message_id.clone(), delta.clone())),
                }
                continue;
            }
            SessionResponse::Callback(
                Call::OnEndMessage { message_id, .. } | Call::OnStartMessage { message_id },
            ) => texts.retain(|(id, _)| id != message_id),
            _ => {}
        }
        whole.push(item.clone());
    }
    texts.sort();
    (whole, texts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_delivers_each_item_once_and_in_order(steps in prop::collection::vec(step(), 0..60)) {
        run(async {
            let log = log();
            let mut pushed = Vec::new();
            let mut closed = false;
            let mut got: [Vec<SessionResponse>; 3] = Default::default();
            let mut over = [false; 3];
            let mut calls: [Option<JoinHandle<PollAnswer<SessionResponse>>>; 3] = [None, None, None];
            for step in steps.into_iter().map(Some).chain([Some(Step::Close), None]) {
                match step {
                    Some(Step::Push(shape)) => {
                        let number = pushed.len();
                        let item = match shape {
                            Shape::Whole => turn(number),
                            Shape::Begin(text) => begin(&text.to_string()),
                            Shape::Piece(text) => piece(&text.to_string(), &format!("{number} ")),
                            Shape::End(text) => end(&text.to_string(), &number.to_string()),
                        };
                        log.push(item.clone());
                        if !closed {
                            pushed.push(item);
                        }
                    }
                    Some(Step::Call(number)) => match &calls[usize::from(number)] {
                        Some(call) if !call.is_finished() => {
                            assert_eq!(log.read(reader(number)).await, PollAnswer::Parallel);
                        }
                        Some(_) => {}
                        None => calls[usize::from(number)] = Some(spawn(&log, reader(number))),
                    },
                    Some(Step::Desert(number)) => {
                        if let Some(call) = &calls[usize::from(number)] {
                            call.abort();
                        }
                    }
                    Some(Step::Wait(millis)) => tokio::time::advance(Duration::from_millis(millis.into())).await,
                    Some(Step::Close) => {
                        log.close();
                        closed = true;
                    }
                    None => {}
                }
                settle().await;
                for number in 0..3 {
                    if !calls[number].as_ref().is_some_and(JoinHandle::is_finished) {
                        continue;
                    }
                    match calls[number].take().unwrap().await {
                        Ok(PollAnswer::One(item)) => got[number].push(item),
                        Ok(PollAnswer::Many(items)) => {
                            assert!(!items.is_empty());
                            got[number].extend(items);
                        }
                        Ok(PollAnswer::TimedOut) => {}
                        Ok(PollAnswer::Closed) => {
                            assert!(closed && !over[number], "closed is said once");
                            over[number] = true;
                        }
                        // A new reader that came when the grace was over.
                        Ok(PollAnswer::NotFound) => assert!(over[number] || (number > 0 && got[number].is_empty())),
                        Ok(PollAnswer::Parallel) => panic!("there was one call"),
                        Err(error) => assert!(error.is_cancelled()),
                    }
                }
            }
            for number in 0..3_u8 {
                let at = usize::from(number);
                let mut known = true;
                loop {
                    match log.read(reader(number)).await {
                        PollAnswer::One(item) => got[at].push(item),
                        PollAnswer::Many(items) => got[at].extend(items),
                        PollAnswer::Closed => break assert!(!over[at]),
                        PollAnswer::NotFound => break known = over[at],
                        PollAnswer::TimedOut | PollAnswer::Parallel => panic!("it is closed and nobody waits"),
                    }
                }
                if number == 0 {
                    assert_eq!(got[at], pushed);
                } else if known {
                    assert_eq!(view(&got[at]), view(&pushed));
                }
            }
        });
    }
}
