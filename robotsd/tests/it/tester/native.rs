//! The code of the tester's page, compiled for this machine.

#[path = "../../../../docs/tester/src/answer.rs"]
mod answer;
#[path = "../../../../docs/tester/src/effect.rs"]
mod effect;
#[path = "../../../../docs/tester/src/request.rs"]
mod request;

pub(super) fn answers(input: &[u8]) -> String {
    answer::answer_all(input)
}
