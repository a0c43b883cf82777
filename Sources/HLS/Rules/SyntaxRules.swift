import URISyntax

/// Rules about bytes, lines and attribute lists (8216bis, 4.1, 4.2 and 4.4).
enum SyntaxRules {
    static let table = [
        PlaylistRule("byte-order-mark", "4.1", checkByteOrderMark),
        PlaylistRule("utf-8", "4.1", checkUTF8),
        PlaylistRule("control-character", "4.1", checkControlCharacters),
        PlaylistRule("whitespace", "4.1", checkWhitespace),
        PlaylistRule("attribute-syntax", "4.2", checkAttributeSyntax),
        PlaylistRule("attribute-twice", "4.2", checkAttributeTwice),
        PlaylistRule("first-line", "4.4.1.1", checkFirstLine),
        PlaylistRule("wrong-playlist", "4.4", checkScope),
        PlaylistRule("tag-twice", "4.4", checkTagTwice),
        PlaylistRule("integer", "4.4", checkIntegers),
        PlaylistRule("required-attribute", "4.4", checkRequired),
        PlaylistRule("quoted-string", "4.2", checkQuoting),
        PlaylistRule("enumerated-string", "4.4", checkEnumerated),
    ]

    private static func checkByteOrderMark(_ view: PlaylistView, _ findings: inout Findings) {
        if view.bytes.starts(with: PlaylistDetector.byteOrderMark) {
            findings.add(1, "playlist", "starts with a byte order mark")
        }
    }

    private static func checkUTF8(_ view: PlaylistView, _ findings: inout Findings) {
        for line in view.lines
        where String(validating: view.bytes[line.range], as: UTF8.self) == nil {
            findings.add(line.number, "playlist", "is not UTF-8")
        }
    }

    private static func checkControlCharacters(_ view: PlaylistView, _ findings: inout Findings) {
        for line in view.lines {
            let bytes = view.bytes[line.range]
            // RECENTLY-REMOVED-DATERANGES separates IDs by tabs.
            guard let found = bytes.first(where: { ASCII.isControl($0) && $0 != 0x09 }) else {
                continue
            }
            findings.add(line.number, "playlist", "holds the control character \(found)")
        }
    }

    private static func checkWhitespace(_ view: PlaylistView, _ findings: inout Findings) {
        for line in view.lines where line.isPadded {
            switch line.kind {
            case .blank, .comment: break
            default: findings.add(line.number, "playlist", "has blanks around the line")
            }
        }
        for use in view.tagsWithAttributes {
            for attribute in use.attributes {
                let before = attribute.name.lowerBound - 1
                let after = attribute.name.upperBound
                if before >= use.value.lowerBound, ASCII.isBlank(view.bytes[before]) {
                    findings.add(use.line, use.name, "has a blank before an attribute")
                } else if after < use.value.upperBound, ASCII.isBlank(view.bytes[after]) {
                    findings.add(use.line, use.name, "has a blank before `=`")
                }
            }
        }
    }

    private static func checkAttributeSyntax(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.tagsWithAttributes {
            for attribute in use.attributes {
                let name = view.text(attribute.name)
                if !attribute.isTerminated {
                    findings.add(use.line, use.name, "\(name) has no closing quote")
                } else if attribute.value.isEmpty, !attribute.isQuoted {
                    findings.add(use.line, use.name, "\(name) has no value")
                }
                let isName = view.bytes[attribute.name].allSatisfy {
                    $0 &- 0x41 < 26 || ASCII.isDigit($0) || $0 == 0x2D
                }
                if !isName || attribute.name.isEmpty {
                    findings.add(use.line, use.name, "'\(name)' is no attribute name")
                }
            }
        }
    }

    private static func checkAttributeTwice(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.tagsWithAttributes {
            var seen: Set<ArraySlice<UInt8>> = []
            for attribute in use.attributes
            where !seen.insert(view.bytes[attribute.name]).inserted {
                findings.add(
                    use.line, use.name, "\(view.text(attribute.name)) stands there twice")
            }
        }
    }

    private static func checkFirstLine(_ view: PlaylistView, _ findings: inout Findings) {
        guard let line = view.first(.extM3U)?.line, line > 1 else { return }
        findings.add(line, .extM3U, "is not the first line")
    }

    private static func checkScope(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.tags {
            guard let kind = Tag.named(use.name).kind, kind != view.kind else { continue }
            let section = kind == .multivariant ? "4.4.6" : "4.4.3"
            findings.add(
                use.line, use.name, "does not belong in a \(view.kind.rawValue) playlist",
                section: section)
        }
    }

    private static func checkTagTwice(_ view: PlaylistView, _ findings: inout Findings) {
        for tag in Tag.table where tag.isUnique {
            for use in view.uses(of: tag.name).dropFirst() {
                findings.add(
                    use.line, use.name, "stands there a second time", section: tag.section)
            }
        }
    }

    private static func checkIntegers(_ view: PlaylistView, _ findings: inout Findings) {
        for tag in Tag.table where tag.value == .integer {
            for use in view.uses(of: tag.name)
            where DecimalNumber.integer(use.valueBytes) == nil {
                findings.add(
                    use.line, use.name, "'\(use.text)' is no decimal integer",
                    section: tag.section)
            }
        }
    }

    private static func checkRequired(_ view: PlaylistView, _ findings: inout Findings) {
        for tag in Tag.table where !tag.required.isEmpty {
            for use in view.uses(of: tag.name) {
                for name in tag.required where !use.attributes.has(name) {
                    findings.add(
                        use.line, use.name, "has no \(name)", section: tag.section)
                }
            }
        }
    }

    private static func checkQuoting(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.tagsWithAttributes {
            let tag = Tag.named(use.name)
            for attribute in use.attributes {
                let name = view.text(attribute.name)
                if tag.quoted.contains(name), !attribute.isQuoted,
                    !(name == "CLOSED-CAPTIONS" && view.text(attribute) == "NONE")
                {
                    findings.add(use.line, use.name, "\(name) is not in quotes")
                } else if tag.enumerated[name] != nil, attribute.isQuoted {
                    findings.add(use.line, use.name, "\(name) is in quotes")
                }
            }
        }
    }

    private static func checkEnumerated(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.tagsWithAttributes {
            let tag = Tag.named(use.name)
            for attribute in use.attributes where !attribute.hasVariable(in: view.bytes) {
                let name = view.text(attribute.name)
                guard let values = tag.enumerated[name] else { continue }
                let text = view.text(attribute)
                if !values.contains(text) {
                    findings.add(
                        use.line, use.name, "\(name) is '\(text)', which is not defined",
                        section: tag.section)
                }
            }
        }
        for use in view.uses(of: .playlistType) where !["VOD", "EVENT"].contains(use.text) {
            findings.add(
                use.line, use.name, "is '\(use.text)', neither VOD nor EVENT", section: "4.4.3.5")
        }
    }
}

extension PlaylistView {
    /// The tags whose values are attribute lists.
    var tagsWithAttributes: [TagUse] {
        tags.filter { Tag.named($0.name).value == .attributes }
    }
}
