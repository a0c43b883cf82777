/// A dictionary that evicts its oldest key when it is full.
///
/// Inlinable, since other modules would otherwise use witness tables for each key and value.
@usableFromInline
package struct RecentMap<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline var values: [Key: Value] = [:]
    /// Keys in the order of their insertion; a ring once it is full.
    @usableFromInline var order: [Key] = []
    @usableFromInline var oldest = 0
    @usableFromInline let capacity: Int

    /// - Parameter capacity: the most keys, 1 or more.
    @inlinable package init(capacity: Int) {
        self.capacity = capacity
    }

    @inlinable package var count: Int { values.count }

    @inlinable package subscript(key: Key) -> Value? {
        get { values[key] }
        set {
            guard let newValue else {
                // Its place in the ring is reused in turn.
                values[key] = nil
                return
            }
            _ = keep(newValue, for: key)
        }
    }

    /// Sets the value of a key.
    ///
    /// - Returns: the key that was dropped to make room; nil if none was.
    @inlinable package mutating func keep(_ value: Value, for key: Key) -> Key? {
        if values.updateValue(value, forKey: key) != nil { return nil }
        guard order.count >= capacity else {
            order.append(key)
            return nil
        }
        let dropped = order[oldest]
        values[dropped] = nil
        order[oldest] = key
        oldest = (oldest + 1) % capacity
        return dropped
    }
}
