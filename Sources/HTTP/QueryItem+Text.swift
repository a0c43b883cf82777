/// Query items as text again.
extension QueryItem {
    /// The item as it stands in a query, without what joins it to others.
    package var text: String { rawValue.map { "\(rawName)=\($0)" } ?? rawName }
}
