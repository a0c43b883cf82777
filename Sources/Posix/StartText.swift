import Glibc

/// The arguments and the environment of this process, as the bytes that they are.
///
/// Swift replaces what is not UTF-8 by U+FFFD, so that another file or URL would be meant.
package enum StartText {
    /// The place of the first argument that is not UTF-8, 1 for the one behind the program's name;
    /// nil if all are.
    package static var brokenArgument: Int? {
        words(of: CommandLine.unsafeArgv).dropFirst().firstIndex { !isText($0) }
    }

    /// Looks for a variable whose value is not UTF-8.
    ///
    /// - Parameter prefix: what the names of the variables begin with that count.
    /// - Returns: the name of the first; nil if there is none.
    package static func brokenVariable(beginning prefix: String) -> String? {
        let broken = words(of: environ).first {
            strncmp($0, prefix, prefix.utf8.count) == 0 && !isText($0)
        }
        return broken.map { String(String(cString: $0).prefix { $0 != "=" }) }
    }

    private static func isText(_ word: UnsafeMutablePointer<CChar>) -> Bool {
        String(validatingCString: word) != nil
    }

    /// Returns the words of a list that ends with nil.
    private static func words(
        of list: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    ) -> [UnsafeMutablePointer<CChar>] {
        var words: [UnsafeMutablePointer<CChar>] = []
        var next = list
        while let place = next, let word = place.pointee {
            words.append(word)
            next = place + 1
        }
        return words
    }
}
