import URISyntax

/// A quick check whether any rule affects the key of a URL, without splitting its query: no rule
/// changes the keys of most requested URLs.
extension KeyMaker {
    /// True if any rule may affect the key of a URL; false is certain.
    static func rulesConcern(_ url: AbsoluteURL, _ rules: [KeyRuleInForce]) -> Bool {
        for rule in rules {
            switch rule.rule {
            case .host(let name): if name != url.origin.authority { return true }
            case .segment: return true
            case .signatures: if url.bytes[url.pathRange].contains(0x3D) { return true }
            default: continue
            }
        }
        return queryIsConcerned(url, rules)
    }

    private static func queryIsConcerned(_ url: AbsoluteURL, _ rules: [KeyRuleInForce]) -> Bool {
        guard let query = url.queryRange else { return false }
        let hasOrder = rules.contains {
            switch $0.rule {
            case .sort, .unique: true
            default: false
            }
        }
        let bytes = url.bytes.span
        var former: Range<Int>?
        var start = query.lowerBound
        // One iteration more than there are separators, for the item after the last one.
        while start <= query.upperBound {
            var end = start
            var nameEnd: Int?
            while end < query.upperBound, bytes[end] != 0x26 {
                if nameEnd == nil, bytes[end] == 0x3D { nameEnd = end }
                end += 1
            }
            let name = start..<(nameEnd ?? end)
            // Equal names may be equal items or wrongly ordered, which this check does not decide.
            if hasOrder, let former, !precedes(bytes, former, name) { return true }
            let isSet = nameEnd != nil
            if isTelemetry(bytes, name)
                || rules.contains(where: { concerns(url.bytes[name], isSet: isSet, $0.rule) })
            {
                return true
            }
            former = name
            start = end + 1
        }
        return false
    }

    private static func precedes(
        _ bytes: Span<UInt8>, _ first: Range<Int>, _ second: Range<Int>
    ) -> Bool {
        var (left, right) = (first.lowerBound, second.lowerBound)
        while left < first.upperBound, right < second.upperBound {
            guard bytes[left] == bytes[right] else { return bytes[left] < bytes[right] }
            left += 1
            right += 1
        }
        return first.count < second.count
    }

    private static func isTelemetry(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
        name.count == 4 && bytes[name.lowerBound] == 0x43 && bytes[name.lowerBound + 1] == 0x4D
            && bytes[name.lowerBound + 2] == 0x43 && bytes[name.lowerBound + 3] == 0x44
    }

    /// True if a rule may remove or change the item of this name; `isSet` if it has a value.
    private static func concerns(
        _ name: ArraySlice<UInt8>, isSet: Bool, _ rule: KeyRule
    ) -> Bool {
        switch rule {
        case .drop(let names): names.contains { $0.matches(name) }
        case .keep(let names): !names.contains { $0.matches(name) }
        case .tier(let pattern, _), .fold(let pattern, _, _): pattern.matches(name)
        case .signatures: isSet && KeySignatures.mayBegin(name)
        case .sort, .unique, .host, .segment: false
        }
    }
}
