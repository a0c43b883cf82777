import ArgumentParser
import Foundation

/// Seeds that are kept in a file, with what each one found.
struct SeedList {
    let seeds: [UInt64]

    /// Reads a file; blocks.
    ///
    /// - Parameter path: the path of the file.
    /// - Throws: `ValidationError` if it cannot be read, or if a line does not begin with a seed.
    init(path: String) throws {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw ValidationError("\(path) cannot be read")
        }
        try self.init(text, path: path)
    }

    /// Reads the text of a file that errors call by its path.
    init(_ text: String, path: String) throws {
        var seeds: [UInt64] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated()
        where !line.hasPrefix("#") {
            guard let word = line.split(separator: " ").first else { continue }
            guard let seed = UInt64(word) else {
                throw ValidationError("\(path), line \(index + 1): \(word) is no seed")
            }
            seeds.append(seed)
        }
        self.seeds = seeds
    }
}
