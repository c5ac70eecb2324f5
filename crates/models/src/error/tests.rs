use expect_test::{Expect, expect};

use super::said::BODY_KEPT;
use super::*;

fn show(error: &ModelError) -> String {
    let ModelError { kind, status, message, body, code, retry_after, .. } = error;
    format!("{kind:?} {status:?}\n{message}\nbody: {body:?}\ncode: {code:?}\nretry after: {retry_after:?}\n")
}

fn check(status: u16, body: &str, expected: Expect) {
    let error = refused(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body);
    expected.assert_eq(&show(&error));
}

fn check_kind(status: u16, body: &str, kind: ModelErrorKind) {
    let error = refused(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body);
    assert_eq!(error.kind, kind, "{status} {body}");
}

fn check_wait(headers: &[(&'static str, &'static str)], wait: Option<Duration>) {
    let headers =
        headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    assert_eq!(refused(StatusCode::TOO_MANY_REQUESTS, &headers, "").retry_after, wait);
}

#[test]
fn ids_of_requests_are_kept_if_they_are_short() {
    let ids = |github: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("x-github-request-id", github.parse().unwrap());
        headers.insert("x-copilot-service-request-id", " s-1 ".parse().unwrap());
        request_ids(&headers)
    };
    let service = Some("s-1".to_owned());
    let github = Some("C0:1".to_owned());
    assert_eq!(ids("C0:1"), RequestIds { github, service: service.clone() });
    assert_eq!(ids(&"x".repeat(LONGEST_ID + 1)), RequestIds { github: None, service });
    assert_eq!(request_ids(&HeaderMap::new()), RequestIds::default());
}

#[test]
fn the_message_is_the_status_and_what_the_provider_said() {
    check(
        400,
        r#"{"error": {"type": "invalid_request_error", "message": "mock failure 400", "code": null, "param": null}}"#,
        expect![[r#"
            Refused Some(400)
            400 mock failure 400
            body: Some("{\"type\":\"invalid_request_error\",\"message\":\"mock failure 400\",\"code\":null,\"param\":null}")
            code: None
            retry after: None
        "#]],
    );
    check(
        401,
        r#"{"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}"#,
        expect![[r#"
            Authentication Some(401)
            401 invalid x-api-key
            body: Some("{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}")
            code: None
            retry after: None
        "#]],
    );
}

/// Calls that a request takes that is answered with this status each time, with the retry policy of the agent.
fn calls(status: u16, body: &str) -> usize {
    let error = refused(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body);
    let mut entropy = hangar_agent::entropy::Entropy::seeded(7);
    let retried = |retries: &u32| {
        hangar_agent::retry::decide(&error, *retries, &mut entropy)
            != hangar_agent::retry::RetryDecision::GiveUp
    };
    1 + (0..20).take_while(retried).count()
}

/// The numbers for 400, 401, 403, 404, 409 and 422 are those of Copilot CLI 1.0. The others are our own: a quota (402) is
/// not retried, a busy or failing server is.
#[test]
fn each_status_has_its_number_of_calls() {
    for (status, expected) in [
        (400, 1),
        (401, 3),
        (402, 1),
        (403, 1),
        (404, 1),
        (408, 6),
        (409, 6),
        (422, 1),
        (429, 6),
        (500, 6),
        (502, 6),
        (503, 6),
        (529, 6),
    ] {
        assert_eq!(
            calls(status, r#"{"error":{"message":"no","type":"x","code":"x"}}"#),
            expected,
            "{status}"
        );
    }
    assert_eq!(calls(429, r#"{"error":{"message":"no","code":"insufficient_quota"}}"#), 1, "a quota");
    assert_eq!(calls(400, r#"{"error":{"message":"prompt is too long"}}"#), 1, "a summary follows instead");
}

#[test]
fn other_shapes_of_errors_are_read_too() {
    let message = |body: &str| refused(StatusCode::BAD_REQUEST, &HeaderMap::new(), body).message;
    assert_eq!(message(r#"{"error": "model 'x' not found"}"#), "400 model 'x' not found");
    assert_eq!(message(r#"{"object": "error", "message": "bad", "code": 400}"#), "400 bad");
    assert_eq!(message(r#"{"detail": "Not Found"}"#), "400 Not Found");
    assert_eq!(message(r#"{"detail": [{"loc": ["body"], "msg": "field required"}]}"#), "400 field required");
    assert_eq!(message(r#"[{"error": {"code": 400, "message": "in a list"}}]"#), "400 in a list");
    assert_eq!(message("plain words\nand more"), "400 plain words");
    assert_eq!(message("<html><body>nginx</body></html>"), "400 Bad Request");
    assert_eq!(message(""), "400 Bad Request");
    assert_eq!(message("{}"), "400 Bad Request");
    assert_eq!(message("null"), "400 null");
}

#[test]
fn the_status_decides_what_the_loop_does() {
    for (status, kind) in [
        (401, ModelErrorKind::Authentication),
        (402, ModelErrorKind::Quota),
        (403, ModelErrorKind::AccessDenied),
        (404, ModelErrorKind::Refused),
        (408, ModelErrorKind::Server),
        (409, ModelErrorKind::Server),
        (413, ModelErrorKind::ContextLength),
        (422, ModelErrorKind::Refused),
        (429, ModelErrorKind::RateLimit),
        (500, ModelErrorKind::Server),
        (503, ModelErrorKind::Server),
        (529, ModelErrorKind::Server),
        (302, ModelErrorKind::Refused),
    ] {
        check_kind(status, "{}", kind);
    }
}

#[test]
fn a_context_that_is_too_long_is_known_by_each_provider_s_words() {
    for body in [
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","code":"context_length_exceeded"}}"#,
        r#"{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 1 + 2 > 2"}}"#,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}"#,
        r#"{"object":"error","message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192.","code":400}"#,
        r#"{"error":{"message":"prompt token count of 140000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}"#,
        r#"{"error":"input length exceeds the context length"}"#,
        r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        r#"{"error":"`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens"}"#,
        r#"{"error":{"message":"Input is too long for requested model.","code":"ValidationException"}}"#,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages, Please reduce the length of the messages.","type":"BadRequestError","code":400}"#,
    ] {
        check_kind(400, body, ModelErrorKind::ContextLength);
    }
    check_kind(
        413,
        r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        ModelErrorKind::ContextLength,
    );
    check_kind(400, r#"{"error":{"message":"unknown parameter: context"}}"#, ModelErrorKind::Refused);
    for words in [
        "Invalid request: Your request exceeded model token limit: 131072",
        "Range of input length should be [1, 129024]",
        "input tokens are more than max tokens allowed",
    ] {
        check_kind(400, &format!(r#"{{"error":{{"message":"{words}"}}}}"#), ModelErrorKind::ContextLength);
    }
}

#[test]
fn a_code_wins_over_the_status() {
    use ModelErrorKind::*;
    let coded = |code: &str| format!(r#"{{"error":{{"message":"no","type":"x","code":"{code}"}}}}"#);
    for (status, code, kind) in [
        (429, "insufficient_quota", Quota),
        (429, "credit_balance_exhausted", Quota),
        (429, "organization_spend_limit_exceeded", Quota),
        (429, "project_spend_limit_exceeded", Quota),
        (429, "organization_usage_limit_exceeded", Quota),
        (403, "quota_exceeded", Quota),
        (429, "free_quota_exceeded", Quota),
        (429, "overage_limit_reached", Quota),
        (400, "billing_not_configured", Quota),
        (429, "rate_limit_exceeded", RateLimit),
        (429, "slow_down", RateLimit),
        (403, "user_model_rate_limited", RateLimit),
        (413, "rate_limit_exceeded", RateLimit),
        (503, "server_is_overloaded", Server),
        (400, "model_overloaded", Server),
        (400, "context_length_exceeded", ContextLength),
        (404, "model_not_found", Refused),
    ] {
        check_kind(status, &coded(code), kind);
    }
}

#[test]
fn an_account_without_money_is_known_by_other_names_and_by_words() {
    for (status, body) in [
        (402, r#"{"type":"error","error":{"type":"billing_error","message":"payment failed"}}"#),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":null}}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits."}}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"This workspace has reached its spend limit."}}"#,
        ),
        (402, r#"{"error":{"code":402,"message":"Insufficient credits"}}"#),
    ] {
        check_kind(status, body, ModelErrorKind::Quota);
    }
    // Google uses the same message for a limit per minute.
    check_kind(
        429,
        r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED"}}"#,
        ModelErrorKind::RateLimit,
    );
}

#[test]
fn a_request_that_is_larger_than_the_limit_per_minute_is_not_waited_for() {
    let limit = |status, code: &str, words: &str, kind| {
        let body = format!(
            r#"{{"error":{{"message":"{words} for model x on tokens per min (TPM): {code}","type":"tokens","code":"rate_limit_exceeded"}}}}"#
        );
        check_kind(status, &body, kind);
    };
    limit(429, "Limit 30000, Requested 40000.", "Request too large", ModelErrorKind::ContextLength);
    limit(
        413,
        "Limit 6,000, Requested 8,000, please reduce",
        "Request too large",
        ModelErrorKind::ContextLength,
    );
    limit(429, "Limit 30000, Used 29000, Requested 2000.", "Rate limit reached", ModelErrorKind::RateLimit);
    limit(413, "Limit 6000, Used 5000, Requested 2000.", "Rate limit reached", ModelErrorKind::RateLimit);
    limit(
        429,
        "the input or output tokens must be reduced",
        "Request too large",
        ModelErrorKind::ContextLength,
    );
}

#[test]
fn openrouter_names_errors_in_their_metadata() {
    let body = |kind: &str, retryable: bool| {
        format!(
            r#"{{"error":{{"code":429,"message":"upstream","metadata":{{"error_type":"{kind}","availability":{{"retryable":{retryable}}}}}}}}}"#
        )
    };
    check_kind(429, &body("insufficient_credits", false), ModelErrorKind::Quota);
    check_kind(400, &body("context_length_exceeded", false), ModelErrorKind::ContextLength);
    let error = |retryable| refused(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), &body("x", retryable));
    assert_eq!(error(true).should_retry, Some(true));
    assert_eq!(error(false).should_retry, Some(false));
}

#[test]
fn the_header_about_retries_wins_over_the_body() {
    let should_retry = |value: &'static str| {
        let headers = HeaderMap::from_iter([("x-should-retry".parse().unwrap(), value.parse().unwrap())]);
        let body = r#"{"error":{"message":"no","availability":{"retryable":true}}}"#;
        refused(StatusCode::BAD_GATEWAY, &headers, body).should_retry
    };
    assert_eq!(should_retry("false"), Some(false));
    assert_eq!(should_retry("true"), Some(true));
    assert_eq!(should_retry("maybe"), Some(true));
}

#[test]
fn the_wait_is_read_from_the_details_of_an_error_if_no_header_says() {
    let body = r#"[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[
        {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[]},
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]"#;
    let wait = |headers: &HeaderMap| refused(StatusCode::TOO_MANY_REQUESTS, headers, body).retry_after;
    assert_eq!(wait(&HeaderMap::new()), Some(Duration::from_millis(34_500)));
    let header = HeaderMap::from_iter([(RETRY_AFTER, "2".parse().unwrap())]);
    assert_eq!(wait(&header), Some(Duration::from_secs(2)));
    assert_eq!(
        in_stream(&serde_json::from_str(body).unwrap()).retry_after,
        Some(Duration::from_millis(34_500))
    );
}

#[test]
fn the_wait_is_read_in_seconds_milliseconds_and_as_a_date() {
    check_wait(&[], None);
    check_wait(&[("retry-after", "2")], Some(Duration::from_secs(2)));
    check_wait(&[("retry-after", "0.5")], Some(Duration::from_millis(500)));
    check_wait(&[("retry-after", "9"), ("retry-after-ms", "1500")], Some(Duration::from_millis(1500)));
    check_wait(&[("retry-after", "-1")], None);
    check_wait(&[("retry-after", "soon")], None);
    let now = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    check_wait(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"), now], Some(Duration::from_secs(30)));
    check_wait(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), now], Some(Duration::ZERO));
    check_wait(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], None);
}

#[test]
fn a_redirect_says_where_it_points() {
    let headers = HeaderMap::from_iter([(LOCATION, "https://elsewhere/".parse().unwrap())]);
    assert_eq!(refused(StatusCode::FOUND, &headers, "").message, "302 moved to https://elsewhere/");
}

#[test]
fn a_long_body_is_cut_between_characters() {
    let body = refused(StatusCode::BAD_REQUEST, &HeaderMap::new(), &"ä".repeat(10_000)).body.unwrap();
    assert_eq!(body.len(), BODY_KEPT);
}

#[test]
fn errors_inside_a_stream_are_classified_by_name() {
    let kind = |data: &str| in_stream(&serde_json::from_str(data).unwrap()).kind;
    assert_eq!(
        kind(r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        ModelErrorKind::Server
    );
    assert_eq!(
        kind(r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#),
        ModelErrorKind::RateLimit
    );
    assert_eq!(
        kind(r#"{"error":{"type":"authentication_error","message":"no"}}"#),
        ModelErrorKind::Authentication
    );
    assert_eq!(kind(r#"{"error":{"type":"invalid_request_error","message":"no"}}"#), ModelErrorKind::Refused);
    assert_eq!(kind(r#"{"error":{"code":502,"message":"upstream"}}"#), ModelErrorKind::Server);
    assert_eq!(kind(r#"{"error":{"code":429,"message":"upstream"}}"#), ModelErrorKind::RateLimit);
    assert_eq!(
        kind(r#"{"response":{"error":{"code":"context_length_exceeded","message":"too long"}}}"#),
        ModelErrorKind::ContextLength
    );
    assert_eq!(kind(r#"{"type":"error","code":"server_error","message":"oops"}"#), ModelErrorKind::Server);
    assert_eq!(
        kind(
            r#"{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached: reduce the length of the messages"}}"#
        ),
        ModelErrorKind::RateLimit
    );
    assert_eq!(
        kind(r#"{"error":{"message":"Rate limit reached, too many tokens"}}"#),
        ModelErrorKind::RateLimit
    );
    assert_eq!(
        kind(r#"{"response":{"error":{"code":"insufficient_quota","message":"no"}}}"#),
        ModelErrorKind::Quota
    );
    assert_eq!(kind(r#"{"error":{"code":402,"message":"Insufficient credits"}}"#), ModelErrorKind::Quota);
    assert_eq!(kind(r#"{"error":{"type":"permission_error","message":"no"}}"#), ModelErrorKind::AccessDenied);
    assert_eq!(
        kind(r#"{"response":{"error":{"code":"cyber_policy","message":"no"}}}"#),
        ModelErrorKind::Refused
    );
    assert_eq!(
        kind(r#"{"error":{"code":400,"message":"prompt is too long: 3 tokens > 2 maximum"}}"#),
        ModelErrorKind::ContextLength
    );
}

#[test]
fn refusals_of_earlier_reasoning_are_told_from_others() {
    for body in [
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.3.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."}}"#,
        r#"{"error":{"message":"The encrypted content gAAA could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}"#,
        r#"{"error":{"message":"Item 'rs_1' of type 'reasoning' was provided without its required following item.","type":"invalid_request_error","code":null}}"#,
        r#"[{"error":{"code":400,"message":"Corrupted thought signature.","status":"INVALID_ARGUMENT"}}]"#,
    ] {
        check_kind(400, body, ModelErrorKind::Reasoning);
    }
    for body in [
        r#"{"error":{"message":"Encrypted content is not supported with this model.","param":"include","code":null}}"#,
        r#"{"error":{"message":"The `reasoning_content` in the thinking mode must be passed back to the API."}}"#,
        r#"{"error":{"message":"thinking.type.enabled: Input tag is not supported"}}"#,
    ] {
        check_kind(400, body, ModelErrorKind::Refused);
    }
}

#[test]
fn refusals_of_an_image_are_told_from_others() {
    for body in [
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.2.content.0.tool_result.content.0.image.source.base64.data: Could not process image"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6812312 bytes > 5242880 bytes"}}"#,
        r#"{"error":{"message":"The image data you provided does not represent a valid image.","type":"invalid_request_error","param":null,"code":"invalid_image_format"}}"#,
        r#"{"error":{"code":400,"message":"Unable to process input image. Please retry or report.","status":"INVALID_ARGUMENT"}}"#,
    ] {
        check_kind(400, body, ModelErrorKind::Image);
    }
    check_kind(400, r#"{"error":{"message":"tools: unsupported schema"}}"#, ModelErrorKind::Refused);
}
