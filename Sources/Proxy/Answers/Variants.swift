/// Variants of one URL in the store: found by what a request selects, noted when a response names
/// the fields that select (RFC 9111 section 4.1).
import CachePolicy
import HTTP
import Posix
import Routing
import Store

/// The decoded index of an object that stands for its variants; lives as long as it is in memory.
final class VariantFacts: Sendable {
    let index: VariantIndex

    private init(_ index: VariantIndex) {
        self.index = index
    }

    /// The index that an object holds; nil where it holds a response.
    static func of(_ object: StoredObject) -> VariantFacts? {
        if let known = object.attachment { return known as? VariantFacts }
        guard let index = VariantIndex(encoded: object.head) else { return nil }
        return object.attach(VariantFacts(index)) as? VariantFacts
    }
}

extension Resource {
    /// What the key text of a variant ends with: a digest, since the values are the clients'.
    func variantMark(_ set: SelectingFields) -> String {
        let digest = SHA256Digest.of(
            set.names.joined(separator: ",") + "\n" + set.text(of: forwardedFields))
        var mark: [UInt8] = []
        Base64URL.append(Array(digest.prefix(15)), to: &mark)
        return String(decoding: mark, as: UTF8.self)
    }

    /// The key text that a response which names these fields is stored under for this request.
    func keyText(selectedBy set: SelectingFields) -> String {
        set.isEmpty || set.isAny ? primaryText : "\(primaryText) vary=\(variantMark(set))"
    }

    /// Whether a stored response is one that this request selects.
    func selects(_ head: StoredHead, in object: StoredObject) -> Bool {
        object.url == keyText(selectedBy: SelectingFields(head.fields))
    }
}

/// What a lookup under HTTP's rules found.
enum Selected {
    case object(StoredObject, ObjectFacts, Resource)
    /// There are variants, but none that the request selects; those with a tag may be asked about.
    case otherVariants(VariantIndex, Resource)
    case nothing
}

extension ObjectStore {
    /// Finds what is stored for a request.
    func select(_ resource: Resource) -> Selected {
        guard let object = lookup(resource.key) else { return .nothing }
        if let facts = ObjectFacts.of(object) { return .object(object, facts, resource) }
        guard let index = VariantFacts.of(object)?.index, let first = index.sets.first else {
            return .nothing
        }
        var best: (StoredObject, ObjectFacts, Resource)?
        for set in index.sets {
            let variant = resource.keyed(resource.keyText(selectedBy: set))
            guard let found = lookup(variant.key), let facts = ObjectFacts.of(found) else {
                continue
            }
            // Of several that fit, the latest (RFC 9111 section 4.1).
            if let best, best.1.head.responseTime > facts.head.responseTime { continue }
            best = (found, facts, variant)
        }
        if let best { return .object(best.0, best.1, best.2) }
        if let (object, facts, variant) = preferredLanguage(resource, index) {
            return .object(object, facts, variant)
        }
        return .otherVariants(index, resource.keyed(resource.keyText(selectedBy: first)))
    }

    /// Where nothing but the language selects, the variant in the one language that the client
    /// wants most: the origin has it, so it could choose no better one.
    private func preferredLanguage(
        _ resource: Resource, _ index: VariantIndex
    ) -> (StoredObject, ObjectFacts, Resource)? {
        guard index.sets.count == 1, index.sets[0].names == ["accept-language"],
            let language = SelectingFields.preferredLanguage(resource.forwardedFields),
            let known = index.variants.first(where: { $0.language == language })
        else { return nil }
        let variant = resource.keyed("\(resource.primaryText) vary=\(known.mark)")
        guard let object = lookup(variant.key), let facts = ObjectFacts.of(object) else {
            return nil
        }
        return (object, facts, variant)
    }

    /// Notes a variant that was just published; blocks for a small file where it is a new one.
    func note(
        _ object: StoredObject, _ head: StoredHead, of resource: Resource, by set: SelectingFields
    ) {
        let key = ObjectKey(sha256Of: resource.primaryText)
        var index = VariantIndex()
        if let known = lookup(key), let facts = VariantFacts.of(known) { index = facts.index }
        let before = index
        let mark = String(object.url.dropFirst(resource.primaryText.utf8.count + " vary=".count))
        index.note(set, VariantIndex.variant(of: head.fields, mark: mark))
        guard index != before else { return }
        let description = ObjectDescription(
            key: key, url: resource.primaryText, role: object.role, head: index.encoded, total: 0,
            created: head.responseTime, isStorable: true)
        // Where the disk refuses, the variant is not found again: a miss, nothing worse.
        guard let made = try? create(description) else { return }
        try? publish(made)
        finish(made)
    }

    /// Takes out what is stored under a key, with all its variants.
    func removeWithVariants(_ primaryText: String) {
        let key = ObjectKey(sha256Of: primaryText)
        if let object = lookup(key), let facts = VariantFacts.of(object) {
            for variant in facts.index.variants {
                remove(ObjectKey(sha256Of: "\(primaryText) vary=\(variant.mark)"))
            }
        }
        remove(key)
    }
}
