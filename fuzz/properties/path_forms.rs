//! The forms of a path: the standard form is stable, the number of forms is bounded, and all forms
//! are different.

use tower_robots::policy::Policy;
use tower_robots::rules::{PathForm, RequestPath};

pub(crate) fn holds(target: &[u8]) {
    holds_for(target, &RequestPath::new(target));
    holds_for(target, &Policy::default().path(target));
}

fn holds_for(target: &[u8], path: &RequestPath<'_>) {
    let forms: Vec<_> = path.forms().collect();
    assert!((1..=RequestPath::MAX_FORMS).contains(&forms.len()) && forms[0] == (PathForm::Standard, path.as_bytes()));
    assert!(forms.iter().all(|(_, form)| form.starts_with(b"/") && form.is_ascii()));
    assert!((1..forms.len()).all(|at| forms[..at].iter().all(|(_, other)| *other != forms[at].1)));
    assert_eq!(path.is_canonical(), forms.len() == 1);
    let again = RequestPath::new(path.as_bytes());
    assert_eq!(again.as_bytes(), path.as_bytes());
    if !matches!(target, [b'/', ..]) {
        return;
    }
    // The path is borrowed if nothing had to be changed.
    let borrowed = std::ptr::eq(path.as_bytes().as_ptr(), target.as_ptr());
    assert_eq!(borrowed, target.starts_with(path.as_bytes()));
    let verbatim = RequestPath::verbatim(target);
    assert!(verbatim.is_canonical() && verbatim.as_bytes().starts_with(b"/"));
}
