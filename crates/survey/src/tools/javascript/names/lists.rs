//! Lists and loops: what a list holds, and what a name means in each turn.

use tree_sitter::Node;

use super::{FUNCTIONS, Item, Place, Project};
use crate::source::{children, field};

impl<'t> Project<'t> {
    /// The elements of a list that the sources alone tell, each in its surroundings.
    pub fn elements(&self, place: &Place<'t>) -> Vec<Place<'t>> {
        let places = self.items(place).into_iter();
        places
            .filter_map(|item| if let Item::Place(place) = item { Some(place) } else { None })
            .collect()
    }

    fn items(&self, place: &Place<'t>) -> Vec<Item<'t>> {
        if !self.may_go_on(place) {
            return Vec::new();
        }
        let mut found = Vec::new();
        let target = self.resolve(place);
        match target.node.kind() {
            "array" => {
                for element in children(target.node) {
                    if element.kind() == "spread_element" {
                        let inner = children(element).first().map(|inner| target.with(*inner));
                        found.extend(inner.map(|inner| self.items(&inner)).unwrap_or_default());
                    } else {
                        found.push(Item::Place(target.with(element)));
                    }
                }
            }
            "ternary_expression" => {
                let ways = ["consequence", "alternative"].map(|way| field(target.node, way));
                let ways = ways.into_iter().flatten();
                found.extend(ways.flat_map(|way| self.items(&target.with(way))));
            }
            "binary_expression" => {
                let sides = ["left", "right"].map(|side| field(target.node, side));
                let sides = sides.into_iter().flatten();
                found.extend(sides.flat_map(|side| self.items(&target.with(side))));
            }
            "call_expression" => found.extend(self.items_of_call(&target)),
            _ => {}
        }
        let pushed = self.modules[place.file].pushes.get(self.word(place, place.node));
        for node in pushed.into_iter().flatten() {
            if node.kind() == "spread_element" {
                let inner = children(*node).first().map(|inner| place.with(*inner));
                found.extend(inner.map(|inner| self.items(&inner)).unwrap_or_default());
            } else {
                found.push(Item::Place(place.with(*node)));
            }
        }
        found
    }

    fn items_of_call(&self, place: &Place<'t>) -> Vec<Item<'t>> {
        let Some(function) = field(place.node, "function") else { return Vec::new() };
        let given = field(place.node, "arguments").map(children).unwrap_or_default();
        let first = given.first().map(|first| place.with(*first));
        let method = field(function, "property").map(|method| self.word(place, method));
        let object = field(function, "object");
        let name = object.map(|object| self.word(place, object));
        match (name, method, object, first) {
            (Some("Object"), Some("values" | "entries" | "keys"), _, Some(first)) => {
                let pairs = self.pairs(&first).into_iter();
                match method {
                    Some("values") => pairs.map(|(_, value)| Item::Place(value)).collect(),
                    Some("keys") => pairs.map(|(key, _)| Item::Text(key)).collect(),
                    _ => pairs.map(|(key, value)| Item::Pair(key, value)).collect(),
                }
            }
            (Some("Array"), Some("from"), _, Some(first)) => self.items(&first),
            (_, Some("map" | "flatMap"), Some(object), Some(callback)) => {
                let callback = self.resolve(&callback);
                let items = self.items(&place.with(object)).into_iter();
                let turns = items.flat_map(|item| {
                    let turn = self.bind_parameter(&callback, item);
                    self.returned(&turn)
                });
                let is_flat = method == Some("flatMap");
                if is_flat {
                    turns.flat_map(|turn| self.items(&turn)).collect()
                } else {
                    turns.map(Item::Place).collect()
                }
            }
            (_, Some("filter" | "sort" | "slice" | "flat" | "reverse"), Some(object), _) => {
                self.items(&place.with(object))
            }
            (_, Some("concat"), Some(object), _) => {
                let all = [object].into_iter().chain(given);
                all.flat_map(|list| self.items(&place.with(list))).collect()
            }
            _ => self.called(place).into_iter().flat_map(|value| self.items(&value)).collect(),
        }
    }

    /// The keys and values of an object.
    pub fn pairs(&self, place: &Place<'t>) -> Vec<(String, Place<'t>)> {
        if !self.may_go_on(place) {
            return Vec::new();
        }
        let mut place = self.resolve(place);
        // `z.object({ … })`, whose shape is spread or told of.
        if place.node.kind() == "call_expression" {
            let given = field(place.node, "arguments").map(children).unwrap_or_default();
            let Some(first) = given.first() else { return Vec::new() };
            place = self.resolve(&place.with(*first));
        }
        let mut found = Vec::new();
        for pair in if place.node.kind() == "object" { children(place.node) } else { Vec::new() } {
            match pair.kind() {
                "pair" => {
                    let value = field(pair, "value").map(|value| place.with(value));
                    found.extend(self.key(&place, pair).zip(value));
                }
                "shorthand_property_identifier" => {
                    found.push((self.word(&place, pair).to_owned(), place.with(pair)));
                }
                "spread_element" => {
                    let inner = children(pair).first().map(|inner| place.with(*inner));
                    found.extend(inner.map(|inner| self.pairs(&inner)).unwrap_or_default());
                }
                _ => {}
            }
        }
        found
    }

    /// `place`, once for each turn of `outer`, if that is a loop over a list that is known.
    ///
    /// `call` is what is around its arguments, if it is a function that is given to something.
    pub fn turns(
        &self,
        place: &Place<'t>,
        outer: Node<'t>,
        call: Option<Node<'t>>,
    ) -> Vec<Place<'t>> {
        if outer.kind() == "for_in_statement" {
            let (Some(left), Some(right)) = (field(outer, "left"), field(outer, "right")) else {
                return Vec::new();
            };
            let items = self.items(&place.with(right)).into_iter();
            return items.map(|item| self.bind_pattern(place, left, item)).collect();
        }
        let function = call.and_then(|call| field(call, "function"));
        let method = function.and_then(|function| field(function, "property"));
        let is_loop = method.is_some_and(|method| {
            matches!(self.word(place, method), "forEach" | "map" | "flatMap")
        });
        let list = function.and_then(|function| field(function, "object"));
        let (true, Some(list), Some(pattern)) =
            (is_loop && FUNCTIONS.contains(&outer.kind()), list, parameter(outer))
        else {
            return Vec::new();
        };
        let items = self.items(&place.with(list)).into_iter();
        items.map(|item| self.bind_pattern(place, pattern, item)).collect()
    }

    /// A function with its first parameter bound.
    fn bind_parameter(&self, function: &Place<'t>, item: Item<'t>) -> Place<'t> {
        match parameter(function.node) {
            Some(pattern) => self.bind_pattern(function, pattern, item),
            None => function.clone(),
        }
    }

    fn bind_pattern(&self, place: &Place<'t>, pattern: Node<'t>, item: Item<'t>) -> Place<'t> {
        let word = |node: Node<'t>| self.word(place, node);
        match (pattern.kind(), item) {
            ("array_pattern", Item::Pair(key, value)) => {
                let names = children(pattern);
                let place = names
                    .first()
                    .map_or_else(|| place.clone(), |name| place.bind(word(*name), Item::Text(key)));
                match names.get(1) {
                    Some(second) => self.bind_pattern(&place, *second, Item::Place(value)),
                    None => place,
                }
            }
            ("object_pattern", Item::Place(value)) => {
                children(pattern).into_iter().fold(place.clone(), |bound, part| {
                    let (key, name) = match (field(part, "key"), field(part, "value")) {
                        (Some(key), Some(name)) => (word(key), word(name)),
                        _ => (word(part), word(part)),
                    };
                    match self.property(&value, key) {
                        Some(property) => bound.bind(name, Item::Place(property)),
                        None => bound,
                    }
                })
            }
            (_, item) => place.bind(word(pattern), item),
        }
    }
}

/// What a function calls its first argument.
fn parameter(function: Node<'_>) -> Option<Node<'_>> {
    let single = field(function, "parameter");
    let first = || field(function, "parameters").and_then(|all| children(all).into_iter().next());
    let parameter = single.or_else(first)?;
    Some(field(parameter, "pattern").unwrap_or(parameter))
}
