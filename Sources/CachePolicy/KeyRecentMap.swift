/// A dictionary that forgets its oldest key when it is full.
///
/// Inlinable, since other modules would go through witness tables for each key and value else.
package struct RecentMap<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline var values: [Key: Value] = [:]
    /// Keys in the order of their coming; a ring once it is full.
    @usableFromInline var order: [Key] = []
    @usableFromInline var oldest = 0
    @usableFromInline let capacity: Int

    /// - Parameter capacity: the most keys that are known, 1 or more.
    @inlinable package init(capacity: Int) {
        self.capacity = capacity
    }

    @inlinable package var count: Int { values.count }

    @inlinable package subscript(key: Key) -> Value? {
        get { values[key] }
        set {
            guard let newValue else {
                // Its place in the ring stays until its turn comes.
                values[key] = nil
                return
            }
            if values.updateValue(newValue, forKey: key) != nil { return }
            if order.count < capacity {
                order.append(key)
            } else {
                values[order[oldest]] = nil
                order[oldest] = key
                oldest = (oldest + 1) % capacity
            }
        }
    }
}
