use proptest::prelude::*;

use super::*;

/// The events of the pieces, one after the other.
fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, SseError> {
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    let mut keep = |data: &str| {
        events.push(data.to_owned());
        Ok::<_, SseError>(())
    };
    for piece in pieces {
        parser.push(piece, &mut keep)?;
    }
    parser.end(&mut keep)?;
    Ok(events)
}

fn check(stream: &str, events: &[&str]) {
    assert_eq!(parse([stream.as_bytes()]).unwrap(), events);
}

#[test]
fn events_end_at_a_blank_line() {
    check("data: a\n\ndata: b\n\n", &["a", "b"]);
    check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
    check("data: a\r\rdata: b\r\r", &["a", "b"]);
}

#[test]
fn lines_of_one_event_are_joined_by_newlines() {
    check("data: {\ndata: }\n\n", &["{\n}"]);
    check("data\ndata: x\n\n", &["\nx"]);
}

#[test]
fn only_one_space_after_the_colon_is_syntax() {
    check("data:a\n\ndata:  b\n\n", &["a", " b"]);
}

#[test]
fn comments_names_ids_and_empty_events_are_passed_over() {
    check(": keep-alive\n\nevent: ping\nid: 7\nretry: 10\n\nevent: x\ndata: a\n\ndatabase: no\n\n", &["a"]);
}

#[test]
fn the_last_event_needs_no_blank_line() {
    check("data: a\n\ndata: [DONE]", &["a", "[DONE]"]);
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    check("\u{feff}data: a\n\n", &["a"]);
}

#[test]
fn an_endless_line_is_refused() {
    let piece = vec![b'x'; 1 << 20];
    assert_eq!(parse(std::iter::repeat_n(piece.as_slice(), 17)), Err(SseError::TooLarge));
    let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
    assert_eq!(parse(std::iter::repeat_n(line.as_slice(), 17)), Err(SseError::TooLarge));
}

#[test]
fn bytes_that_are_not_text_are_refused() {
    assert_eq!(parse([b"data: \xff\n\n".as_slice()]), Err(SseError::NotUtf8));
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_yields_the_same_events(
        stream in prop::collection::vec(
            prop_oneof!["(data|data:|data: |event: |id|:)[a-zä😀{}\": ]{0,8}", Just(String::new())], 0..20),
        newline in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let stream = stream.join(newline);
        let bytes = stream.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(parse(pieces), parse([bytes]));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse([bytes.as_slice()]);
    }
}
