//! Which module of a crate uses which, read from its sources.
//!
//! A module is a file. One uses another if it names something in it: in a `use`, by a path, or inside a macro. Tests are not
//! looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::Context as _;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The modules that each module uses.
pub type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Reads the sources below this directory. The root of the crate is called `lib`.
pub fn arrows(sources: &Path) -> anyhow::Result<Arrows> {
    let mut texts = BTreeMap::new();
    let mut waiting = vec![sources.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(sources)?.with_extension("");
                let name = name.to_string_lossy().replace('/', "::");
                texts.insert(name, fs::read_to_string(&path)?);
            }
        }
    }
    arrows_of(&texts)
}

/// The same, of files by the names of their modules.
pub fn arrows_of(texts: &BTreeMap<String, String>) -> anyhow::Result<Arrows> {
    let modules: BTreeSet<_> = texts.keys().cloned().collect();
    let mut arrows = Arrows::new();
    for (name, text) in texts {
        let tokens: TokenStream =
            text.parse().map_err(|error| anyhow::anyhow!("{error}")).context(name.clone())?;
        let place = if is_root(name) { Vec::new() } else { split(name) };
        let mut file =
            File { modules: &modules, name, aliases: BTreeMap::new(), used: BTreeSet::new() };
        file.read_uses(tokens.clone(), &place);
        file.read_paths(tokens, &place);
        arrows.insert(name.clone(), file.used);
    }
    Ok(arrows)
}

/// Modules that use each other in a circle.
#[must_use]
pub fn circles(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![from]);
        while let Some(module) = waiting.pop() {
            for next in arrows.get(module).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    waiting.push(next);
                }
            }
        }
        seen
    };
    let reaches: BTreeMap<_, _> = arrows.keys().map(|module| (module, reached(module))).collect();
    let mut circles: Vec<BTreeSet<String>> = Vec::new();
    for (module, seen) in &reaches {
        let is_known = circles.iter().any(|circle| circle.contains(*module));
        if seen.contains(*module) && !is_known {
            let back =
                |other: &&String| reaches.get(*other).is_some_and(|seen| seen.contains(*module));
            circles.push(seen.iter().filter(back).cloned().collect());
        }
    }
    circles
}

fn is_root(name: &str) -> bool {
    name == "lib" || name == "main"
}

fn split(name: &str) -> Vec<String> {
    name.split("::").map(str::to_owned).collect()
}

struct File<'a> {
    modules: &'a BTreeSet<String>,
    name: &'a str,
    /// Names that stand for modules here.
    aliases: BTreeMap<String, Vec<String>>,
    used: BTreeSet<String>,
}

impl File<'_> {
    /// The module in which a path from the root ends, and whether the path is that module itself.
    fn module(&self, path: &[String]) -> Option<(String, bool)> {
        (1..=path.len()).rev().find_map(|length| {
            let name = path[..length].join("::");
            self.modules.contains(&name).then_some((name, length == path.len()))
        })
    }

    fn uses(&mut self, path: &[String]) {
        let (module, _) = self.module(path).unwrap_or_else(|| ("lib".into(), false));
        if module != self.name && self.modules.contains(&module) {
            self.used.insert(module);
        }
    }

    /// A path from the root of the crate, if it is one of ours.
    fn absolute(&self, path: &[String], place: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([place, rest].concat()),
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                let above = place.get(..place.len().checked_sub(ups)?)?;
                Some([above, &path[ups..]].concat())
            }
            name => {
                if let Some(module) = self.aliases.get(name) {
                    return Some([module, rest].concat());
                }
                let child = [place, &[name.to_owned()]].concat();
                let is_child = self.modules.contains(&child.join("::"));
                is_child.then(|| [child, rest.to_vec()].concat())
            }
        }
    }

    fn read_uses(&mut self, tokens: TokenStream, place: &[String]) {
        each_item(tokens, |item| match item {
            Item::Use(tree) => {
                let mut leaves = Vec::new();
                expand(tree, &[], &mut leaves);
                for (path, alias) in leaves {
                    let Some(path) = self.absolute(&path, place) else { continue };
                    match self.module(&path) {
                        Some((_, true)) => {
                            self.aliases.insert(alias, path);
                        }
                        Some((_, false)) | None => self.uses(&path),
                    }
                }
            }
            Item::Module(name, body) => self.read_uses(body, &[place, &[name]].concat()),
            Item::Other(_) => {}
        });
    }

    fn read_paths(&mut self, tokens: TokenStream, place: &[String]) {
        each_item(tokens, |item| match item {
            Item::Use(_) => {}
            Item::Module(name, body) => self.read_paths(body, &[place, &[name]].concat()),
            Item::Other(tokens) => self.scan(tokens, place),
        });
    }

    /// Notes every path that stands in these tokens, whatever they mean.
    fn scan(&mut self, tokens: Vec<TokenTree>, place: &[String]) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens
            .into_iter()
            .chain([TokenTree::Punct(proc_macro2::Punct::new(';', proc_macro2::Spacing::Alone))])
        {
            match token {
                TokenTree::Ident(ident) if path.is_empty() || colons == 2 => {
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1
                }
                other => {
                    self.end_path(&mut path, place);
                    colons = 0;
                    match other {
                        TokenTree::Ident(ident) => path.push(ident.to_string()),
                        TokenTree::Group(group) => {
                            self.scan(group.stream().into_iter().collect(), place);
                        }
                        TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                    }
                }
            }
        }
    }

    fn end_path(&mut self, path: &mut Vec<String>, place: &[String]) {
        let path = std::mem::take(path);
        if path.len() > 1
            && let Some(absolute) = self.absolute(&path, place)
        {
            self.uses(&absolute);
        }
    }
}

enum Item {
    Use(Vec<TokenTree>),
    Module(String, TokenStream),
    Other(Vec<TokenTree>),
}

/// Calls back for each `use`, each module with a body, and what lies between them. Tests are left out.
fn each_item(tokens: TokenStream, mut act: impl FnMut(Item)) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let (mut rest, mut at) = (Vec::new(), 0);
    let is = |token: Option<&TokenTree>, word: &str| matches!(token, Some(TokenTree::Ident(ident)) if ident == word);
    let mut is_test = false;
    while at < tokens.len() {
        if let TokenTree::Group(group) = &tokens[at]
            && group.delimiter() == Delimiter::Bracket
            && group.stream().to_string().replace(' ', "") == "cfg(test)"
        {
            is_test = true;
        }
        if is(tokens.get(at), "use") {
            let end = tokens[at..].iter().position(is_semicolon);
            let end = at + end.unwrap_or(tokens.len() - at - 1);
            act(Item::Use(tokens[at + 1..end].to_vec()));
            at = end + 1;
        } else if is(tokens.get(at), "mod")
            && let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
                (tokens.get(at + 1), tokens.get(at + 2))
        {
            if !is_test {
                act(Item::Module(name.to_string(), body.stream()));
            }
            is_test = false;
            at += 3;
        } else if is(tokens.get(at), "mod") {
            // A module in a file of its own is not used by being named.
            at += 3;
        } else {
            rest.push(tokens[at].clone());
            at += 1;
        }
    }
    act(Item::Other(rest));
}

fn is_semicolon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';')
}

/// The leaves of a tree of imports, with the names that they have here.
fn expand(tree: Vec<TokenTree>, above: &[String], leaves: &mut Vec<(Vec<String>, String)>) {
    let mut path = above.to_vec();
    let mut alias = None;
    let mut tokens = tree.into_iter();
    let mut has_leaf = false;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident) if ident == "as" => {
                alias = tokens.next().map(|name| name.to_string());
            }
            TokenTree::Ident(ident) if ident == "self" && !path.is_empty() => has_leaf = true,
            TokenTree::Ident(ident) => {
                path.push(ident.to_string());
                has_leaf = true;
            }
            TokenTree::Group(group) => {
                has_leaf = false;
                let mut part = Vec::new();
                for token in group.stream() {
                    if matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ',') {
                        expand(std::mem::take(&mut part), &path, leaves);
                    } else {
                        part.push(token);
                    }
                }
                expand(part, &path, leaves);
            }
            // All of a module.
            TokenTree::Punct(punct) if punct.as_char() == '*' => {
                path.push("*".into());
                has_leaf = true;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    if has_leaf && let Some(name) = path.last() {
        let name = alias.unwrap_or_else(|| name.clone());
        leaves.push((path, name));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::{arrows_of, circles};

    fn texts(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_use_a_path_an_alias_and_a_macro_are_arrows_and_tests_are_not() {
        let arrows = arrows_of(&texts(&[
            ("lib", "pub mod a; pub mod b; pub mod c; pub mod d; pub mod e;"),
            ("a", "use crate::{b::{self, Thing}, c as see}; fn f() { see::g(); vec![super::d::x()]; }"),
            ("b", "mod inner; pub use inner::Thing; #[cfg(test)] mod tests { use crate::e::E; }"),
            ("b::inner", "pub struct Thing; mod nested { use super::super::Other; }"),
            ("c", "pub fn g() -> crate::b::inner::Thing { todo!() }"),
            ("d", "use std::fmt; pub fn x() -> fmt::Result { Ok(()) }"),
            ("e", "pub struct E;"),
        ]))
        .unwrap();
        assert_eq!(arrows["a"], set(&["b", "c", "d"]));
        assert_eq!(arrows["b"], set(&["b::inner"]));
        assert_eq!(arrows["b::inner"], set(&["b"]));
        assert_eq!(arrows["c"], set(&["b::inner"]));
        assert_eq!(arrows["d"], set(&[]));
        assert_eq!(circles(&arrows), [set(&["b", "b::inner"])]);
    }
}
