/// A dictionary that forgets its oldest key when it is full.
package struct RecentMap<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var values: [Key: Value] = [:]
    /// Keys in the order of their coming; a ring once it is full.
    private var order: [Key] = []
    private var oldest = 0
    private let capacity: Int

    /// - Parameter capacity: the most keys that are known, 1 or more.
    package init(capacity: Int) {
        self.capacity = capacity
    }

    package var count: Int { values.count }

    package subscript(key: Key) -> Value? {
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
