// The shape of a configuration file, decoded before its values.
import FoundationEssentials

/// The kinds of the values in a configuration file, by name.
struct FileShape: Decodable {
    enum Kind { case text, whole, number, truth, texts, other }

    private struct AnyName: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    let kinds: [String: Kind]

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyName.self)
        var kinds: [String: Kind] = [:]
        for key in container.allKeys {
            if (try? container.decode(String.self, forKey: key)) != nil {
                kinds[key.stringValue] = .text
            } else if (try? container.decode(Bool.self, forKey: key)) != nil {
                kinds[key.stringValue] = .truth
            } else if (try? container.decode(Int.self, forKey: key)) != nil {
                kinds[key.stringValue] = .whole
            } else if (try? container.decode(Double.self, forKey: key)) != nil {
                kinds[key.stringValue] = .number
            } else if (try? container.decode([String].self, forKey: key)) != nil {
                kinds[key.stringValue] = .texts
            } else {
                kinds[key.stringValue] = .other
            }
        }
        self.kinds = kinds
    }
}
