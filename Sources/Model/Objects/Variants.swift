// Variants of one URL in the store: selected by the request, recorded when a response lists its
// selecting fields in Vary (RFC 9111 section 4.1).
package import CachePolicy
import Routing
package import Store

/// The decoded variant index that is stored under a primary key; lives while the object is in
/// memory.
final class VariantFacts: Sendable {
    package let index: VariantIndex

    private init(_ index: VariantIndex) {
        self.index = index
    }

    /// Returns the index that an object contains; nil if it is a response.
    package static func of(_ object: StoredObject) -> VariantFacts? {
        if let known = object.attachment { return known as? VariantFacts }
        guard let index = VariantIndex(encoded: object.head) else { return nil }
        return object.attach(VariantFacts(index)) as? VariantFacts
    }
}

extension Resource {
    /// Returns the end of a variant's key text: a digest, since the values come from clients.
    func variantMark(_ set: SelectingFields) -> String {
        let digest = SHA256Digest.of(
            set.names.joined(separator: ",") + "\n" + set.text(of: forwardedFields))
        var mark: [UInt8] = []
        Base64URL.append(Array(digest.prefix(15)), to: &mark)
        return String(decoding: mark, as: UTF8.self)
    }

    /// Returns the key that a response with these selecting fields is stored under for this
    /// request.
    package func cacheKey(selectedBy set: SelectingFields) -> CacheKey {
        set.isEmpty || set.isAny ? cacheKey.primary : cacheKey.selected(by: variantMark(set))
    }

    /// Returns the resource under the key that its response was stored under.
    package func stored(as object: StoredObject) -> Resource {
        object.url == keyText ? self : changing { $0.cacheKey = CacheKey(text: object.url) }
    }

    /// True if this request selects a stored response.
    package func selects(_ head: StoredHead, in object: StoredObject) -> Bool {
        let selected = cacheKey(selectedBy: SelectingFields(head.fields))
        return object.url == (selected == cacheKey ? keyText : selected.text)
    }
}

extension CacheKey {
    /// Returns the key of the variant with this mark.
    package func selected(by mark: String) -> CacheKey {
        primary.changing { $0.variant = mark }
    }
}

/// The result of a lookup under HTTP's rules.
package enum Selected {
    case object(StoredObject, ObjectFacts, Resource)
    /// There are variants, but the request selects none; those with an entity tag may be
    /// revalidated.
    case otherVariants(VariantIndex, Resource)
    case nothing
}

extension ObjectStore {
    /// Finds the stored response for a request.
    package func select(_ resource: Resource) -> Selected {
        guard let object = lookup(resource.key) else { return .nothing }
        if let facts = ObjectFacts.of(object) { return .object(object, facts, resource) }
        guard let index = VariantFacts.of(object)?.index, let first = index.sets.first else {
            return .nothing
        }
        var best: (StoredObject, ObjectFacts, Resource)?
        for set in index.sets {
            let key = resource.cacheKey(selectedBy: set)
            // What the index does not list may be older than an unsafe request.
            guard let mark = key.variant, index.lists(mark) else { continue }
            let variant = resource.changing { $0.cacheKey = key }
            guard let found = lookup(variant.key), let facts = ObjectFacts.of(found) else {
                continue
            }
            // The latest of several that match (RFC 9111 section 4.1).
            if let best, best.1.head.responseTime > facts.head.responseTime { continue }
            best = (found, facts, variant)
        }
        if let best { return .object(best.0, best.1, best.2) }
        if let (object, facts, variant) = preferredLanguage(resource, index) {
            return .object(object, facts, variant)
        }
        return .otherVariants(
            index, resource.changing { $0.cacheKey = resource.cacheKey(selectedBy: first) })
    }

    /// Returns the variant in the client's preferred language, if the language is the only
    /// selecting field: no other variant at the origin could be preferred.
    private func preferredLanguage(
        _ resource: Resource, _ index: VariantIndex
    ) -> (StoredObject, ObjectFacts, Resource)? {
        guard index.sets.count == 1, index.sets[0].names == ["accept-language"],
            let language = SelectingFields.preferredLanguage(resource.forwardedFields),
            let known = index.variants.first(where: { $0.language == language })
        else { return nil }
        let variant = resource.changing { $0.cacheKey = $0.cacheKey.selected(by: known.mark) }
        guard let object = lookup(variant.key), let facts = ObjectFacts.of(object) else {
            return nil
        }
        return (object, facts, variant)
    }

    /// Returns what is stored under a resource's own key; a variant only if the index of its URL
    /// lists it.
    ///
    /// A variant that the index does not list is not removed by `removeWithVariants`: a response
    /// without `Vary`, or the eviction of the index, may have come before it.
    package func lookupListed(_ resource: Resource) -> StoredObject? {
        guard let object = lookup(resource.key) else { return nil }
        guard let mark = resource.cacheKey.variant else { return object }
        guard let entry = peek(ObjectKey(resource.cacheKey.primary)),
            let index = VariantFacts.of(entry)?.index
        else { return nil }
        return index.lists(mark) ? object : nil
    }

    /// Adds a newly published variant to the index, and removes the oldest ones, for which it has
    /// no room; blocks to write a small file, and to remove those.
    package func note(
        _ object: StoredObject, _ head: StoredHead, of resource: Resource, by set: SelectingFields
    ) {
        let primary = resource.cacheKey.primary.text
        let key = ObjectKey(sha256Of: primary)
        var index = VariantIndex()
        if let known = lookup(key), let facts = VariantFacts.of(known) { index = facts.index }
        let before = index
        let mark = CacheKey(text: object.url).variant ?? ""
        let displaced = index.note(set, VariantIndex.variant(of: head.fields, mark: mark))
        guard index != before else { return }
        let description = ObjectDescription(
            key: key, url: primary, role: object.role, head: index.encoded, total: 0,
            created: head.responseTime, isStorable: true)
        // If the disk fails, the variant is not found again: that costs a miss, nothing worse.
        guard let made = try? create(description) else { return }
        try? publish(made)
        finish(made)
        for mark in displaced { remove(ObjectKey(resource.cacheKey.selected(by: mark))) }
    }

    /// Removes what is stored under a key, with all its variants.
    package func removeWithVariants(_ primary: CacheKey) {
        let key = ObjectKey(primary)
        if let object = lookup(key), let facts = VariantFacts.of(object) {
            for variant in facts.index.variants {
                remove(ObjectKey(primary.selected(by: variant.mark)))
            }
        }
        remove(key)
    }
}
