import ArgumentParser
import Foundation

/// Reads the seeds that are kept in a file, with what each one found; blocks.
///
/// - Parameter path: the path of the file.
/// - Returns: the seeds in the order of their lines.
/// - Throws: `ValidationError` if it cannot be read, or if a line does not begin with a seed.
func readSeeds(from path: String) throws -> [UInt64] {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
        throw ValidationError("\(path) cannot be read")
    }
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
    return seeds
}
