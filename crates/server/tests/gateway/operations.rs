//! Which paths are forwarded, and which never reach a provider's key.

use tidegate_testkit::{gate::Gate, http::Answer};

use crate::bed::{Setup, good, hits};

fn message(answer: &Answer) -> String {
    answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
}

/// Paths that a provider's key may open and that are no inference.
const UNLISTED: [&str; 8] = [
    "/v1/organization/admin_api_keys",
    "/v1/fine_tuning/jobs",
    "/v1/batches",
    "/v1/files",
    "/v1/images",
    "/v1/moderations/x",
    "/v1/chat/completions/x",
    "/v1/messages/batches",
];

const WITH_MODEL: &str = "{\"model\":\"r\",\"training_file\":\"file-1\"}";

#[test]
fn a_path_that_is_no_inference_is_never_forwarded() {
    let fake = good();
    for api in ["openai", "anthropic"] {
        let top = "default_route: r";
        let gate = Setup { top, api, ..Setup::of(&[&fake]) }.start();
        for path in UNLISTED {
            for body in ["{}", "{\"model\":null}", WITH_MODEL] {
                let answer = gate.post(path, body);
                assert_eq!(answer.status, 404, "{api} {path} {body}: {}", answer.text());
                assert!(message(&answer).contains("serves"), "{path}: {}", answer.text());
            }
        }
        let answer = gate.post("/v1/messages/batches", WITH_MODEL);
        assert_eq!(answer.json()["type"], "error", "in the shape of the path's vendor");
    }
    assert_eq!(hits(&fake), 0);
}

#[test]
fn a_provider_that_says_so_takes_other_paths_with_a_model_only() {
    let fake = good();
    let gate = |api| {
        let (provider, top) = ("serves: [chat, other]", "default_route: r");
        Setup { provider, top, api, ..Setup::of(&[&fake]) }.start()
    };
    let openai = gate("openai");
    for body in ["{}", "{\"model\":null}", "{\"model\":\"\"}"] {
        for path in UNLISTED {
            let answer = openai.post(path, body);
            assert_eq!(answer.status, 400, "{path} {body}: {}", answer.text());
            assert!(message(&answer).contains("`model`"), "{}", answer.text());
        }
    }
    assert_eq!(hits(&fake), 0);
    assert_eq!(openai.post("/v1/fine_tuning/jobs", WITH_MODEL).status, 200);
    assert_eq!(openai.post("/v1/rerank", WITH_MODEL).status, 200, "`other` has these too");
    assert_eq!(openai.post("/v1/embeddings", WITH_MODEL).status, 400, "not in the list");
    let answer = openai.post("/v1/messages/batches", WITH_MODEL);
    assert_eq!(answer.status, 400, "it speaks another protocol");
    let call = fake.calls().remove(0);
    assert_eq!(call.path, "/v1/fine_tuning/jobs");
    assert_eq!(call.text(), WITH_MODEL.replace("\"r\"", "\"m\""));
    let anthropic = gate("anthropic");
    assert_eq!(anthropic.post("/v1/messages/batches", WITH_MODEL).status, 200);
    assert_eq!(anthropic.post("/v1/messages", WITH_MODEL).status, 200);
}

#[test]
fn of_two_providers_only_the_one_that_says_so_is_asked() {
    let (plain, open) = (good(), good());
    let yaml = Setup::of(&[&plain, &open]).yaml();
    let second = format!("{}/v1', ", open.url());
    let yaml = yaml.replacen(&second, &format!("{second}serves: [other]"), 1);
    let gate = Gate::start(&yaml, &[]);
    let answer = gate.post("/v1/fine_tuning/jobs", WITH_MODEL);
    assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{}", answer.text());
    let direct = gate.post("/v1/fine_tuning/jobs", &WITH_MODEL.replace("\"r\"", "\"a/x\""));
    assert_eq!((direct.status, hits(&plain)), (400, 0), "{}", direct.text());
    assert!(message(&direct).contains("does not serve this endpoint"), "{}", direct.text());
}

#[test]
fn a_gemini_request_without_a_target_that_speaks_it_gets_an_error_that_its_sdk_understands() {
    let fake = good();
    let (provider, top) = ("serves: [chat, other]", "default_route: r");
    let gate = Setup { provider, top, ..Setup::of(&[&fake]) }.start();
    let body = "{\"contents\":[{\"parts\":[{\"text\":\"good morning\"}]}]}";
    for path in ["/v1beta/models/r:countTokens", "/v1beta/models/r:embedContent"] {
        let answer = gate.post(path, body);
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        let error = &answer.json()["error"];
        assert_eq!((&error["code"], &error["status"]), (&400.into(), &"INVALID_ARGUMENT".into()));
    }
    let other = gate.post("/v1beta/cachedContents", body);
    assert_eq!((other.status, &other.json()["error"]["status"]), (501, &"UNIMPLEMENTED".into()));
    let broken = gate.post("/v1beta/models/%2e%2e:generateContent", body);
    assert_eq!((broken.status, &broken.json()["error"]["status"]), (404, &"NOT_FOUND".into()));
    assert_eq!(gate.get("/v1/models/a/m").status, 200, "a name with a colon is still a name");
    assert_eq!(hits(&fake), 0);
}

#[test]
fn s25_other_spellings_of_a_path_are_judged_before_anything_is_forwarded() {
    let fake = good();
    let gate = Setup { provider: "serves: [chat, other]", ..Setup::of(&[&fake]) }.start();
    for path in [
        "/v1/chat/../organization/admin_api_keys",
        "/v1/%6frganization/admin_api_keys",
        "/v1/audio/..%2forganization",
        "/v1/images/%2e%2e/organization",
        "/v1/audio//speech",
        "/v1/audio/",
        "/v1/chat/completions%00",
    ] {
        assert_eq!(gate.post(path, WITH_MODEL).status, 404, "{path}");
    }
    assert_eq!(hits(&fake), 0);
}
