//! Rules made of whole schemas: references, alternatives, negation, conditions.

use serde_json::Value;

use super::{
    check::{Check, Rule},
    problem::Problem,
    verdict::Verdict,
};

/// Alternatives of which a problem is told.
const FORMS_TOLD: usize = 3;

impl Check<'_> {
    /// `$ref`. A reference that leads back to itself meets the bound of depth.
    pub(super) fn reference(&mut self, rule: Rule<'_>) -> Verdict {
        let Some(reference) = rule.says.as_str() else { return Verdict::Unknown };
        if !self.spend_on(reference) {
            return Verdict::Unknown;
        }
        match self.referred(reference) {
            Some(schema) => self.visit(schema, rule.value, rule.place),
            None => Verdict::Unknown,
        }
    }

    /// `allOf`.
    pub(super) fn all_of(&mut self, rule: Rule<'_>) -> Verdict {
        let Value::Array(schemas) = rule.says else { return Verdict::Unknown };
        let mut verdict = Verdict::Fits;
        for schema in schemas {
            if !self.spend(1) {
                return verdict.and(Verdict::Unknown);
            }
            verdict = verdict.and(self.visit(schema, rule.value, rule.place));
        }
        verdict
    }

    /// `anyOf`.
    pub(super) fn any_of(&mut self, rule: Rule<'_>) -> Verdict {
        let Some(forms) = self.forms(rule) else { return Verdict::Unknown };
        if forms.fitting > 0 {
            return Verdict::Fits;
        }
        if forms.is_sure { self.fits_none(rule, forms.broken) } else { Verdict::Unknown }
    }

    /// `oneOf`.
    pub(super) fn one_of(&mut self, rule: Rule<'_>) -> Verdict {
        let Some(forms) = self.forms(rule) else { return Verdict::Unknown };
        match forms.fitting {
            0 if forms.is_sure => self.fits_none(rule, forms.broken),
            1 if forms.is_sure => Verdict::Fits,
            0 | 1 => Verdict::Unknown,
            _ => self.breaks(rule.place, "fits more than one of the forms of which one is to fit"),
        }
    }

    /// `not`.
    pub(super) fn not(&mut self, rule: Rule<'_>) -> Verdict {
        match self.try_out(rule.says, rule).0 {
            Verdict::Fits => self.breaks(rule.place, "is of the form that is ruled out by `not`"),
            Verdict::Breaks => Verdict::Fits,
            Verdict::Unknown => Verdict::Unknown,
        }
    }

    /// `if`, with `then` and `else`.
    pub(super) fn if_then_else(&mut self, rule: Rule<'_>) -> Verdict {
        let next = match self.try_out(rule.says, rule).0 {
            Verdict::Fits => "then",
            Verdict::Breaks => "else",
            Verdict::Unknown => return Verdict::Unknown,
        };
        match rule.beside.get(next) {
            Some(schema) => self.visit(schema, rule.value, rule.place),
            None => Verdict::Fits,
        }
    }

    /// How a value stands to each alternative; `None` if there are none.
    fn forms(&mut self, rule: Rule<'_>) -> Option<Forms> {
        let Value::Array(schemas) = rule.says else { return None };
        let mut forms = Forms { fitting: 0, is_sure: true, broken: Vec::new() };
        for schema in schemas {
            if !self.spend(1) {
                forms.is_sure = false;
                break;
            }
            match self.try_out(schema, rule) {
                (Verdict::Fits, _) => forms.fitting += 1,
                (Verdict::Breaks, problems) => forms.broken.push(problems),
                (Verdict::Unknown, _) => forms.is_sure = false,
            }
        }
        (!schemas.is_empty()).then_some(forms)
    }

    /// Tells why no alternative fits: in the words of the one that is meant, if there is one of the
    /// value's type.
    fn fits_none(&mut self, rule: Rule<'_>, broken: Vec<Vec<Problem>>) -> Verdict {
        let here = rule.place.to_string();
        let kinds = |problems: &[Problem]| -> Option<Vec<&'static str>> {
            let first = problems.iter().find(|it| it.at == here && !it.kinds.is_empty())?;
            Some(first.kinds.clone())
        };
        let count = broken.len();
        let mut wanted = Vec::new();
        let mut near = Vec::new();
        for problems in broken {
            match kinds(&problems) {
                Some(kinds) => wanted.extend(kinds),
                None => near.push(problems),
            }
        }
        if near.is_empty() {
            return self.tell(Problem::of_kind(here, wanted, rule.value));
        }
        if near.len() == 1 {
            near.into_iter().flatten().for_each(|problem| {
                self.tell(problem);
            });
            return Verdict::Breaks;
        }
        let told = near.iter().take(FORMS_TOLD).filter_map(|problems| problems.first());
        let told: Vec<String> = told.map(ToString::to_string).collect();
        let what = format!("fits none of {count} forms: {}", told.join("; or "));
        self.breaks(rule.place, &what)
    }
}

/// The outcome of several alternatives.
struct Forms {
    fitting: usize,
    /// Whether all were decided.
    is_sure: bool,
    /// What is wrong with each that does not fit.
    broken: Vec<Vec<Problem>>,
}
