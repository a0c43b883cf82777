/// The text form of query items.
extension QueryItem {
    /// The item as written in a query, without separators.
    package var text: String { rawValue.map { "\(rawName)=\($0)" } ?? rawName }
}
