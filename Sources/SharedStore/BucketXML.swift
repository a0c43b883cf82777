// The XML texts of S3: flat, so that elements are found by name without a tree.
import Numbers

/// One object of a listing.
package struct ListedObject: Sendable, Hashable {
    /// The whole name, with the prefix.
    package let name: String
    /// In bytes.
    package let size: Int64
    /// The entity tag with its quotes; empty if the store gave none.
    package let tag: String
}

/// One page of a listing (ListObjectsV2).
package struct BucketListing: Sendable, Hashable {
    package var objects: [ListedObject] = []
    /// Where the next page starts; nil on the last one.
    package var next: String?

    /// The most objects that a page is asked for, as many as S3 gives; a store that gives more is
    /// bounded by the length of its answer.
    package static let mostObjects = 1_000

    /// Parses a page; nil for any other text, and for a page that says that it goes on and does not
    /// say where.
    package init?(_ text: [UInt8]) {
        let reader = ElementReader(text)
        guard let page = reader.first("ListBucketResult") else { return nil }
        for content in reader.all("Contents", in: page) {
            guard let name = reader.text("Key", in: content), !name.isEmpty,
                let size = reader.text("Size", in: content).flatMap({
                    ExternalNumber.integer($0, in: 0...Int64(ExternalNumber.largest))
                })
            else { return nil }
            objects.append(
                ListedObject(
                    name: name, size: size, tag: reader.text("ETag", in: content) ?? ""))
        }
        guard reader.text("IsTruncated", in: page) == "true" else { return }
        guard let token = reader.text("NextContinuationToken", in: page), !token.isEmpty else {
            return nil
        }
        next = token
    }
}

/// Single values in answers of S3.
package enum BucketAnswer {
    /// The code of an error, such as `AccessDenied`: letters, 64 at most; nil for any other text.
    package static func errorCode(_ text: [UInt8]) -> String? {
        let reader = ElementReader(text)
        guard let error = reader.first("Error"), let code = reader.text("Code", in: error),
            (1...64).contains(code.utf8.count),
            code.utf8.allSatisfy({ (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0) })
        else { return nil }
        return code
    }

    /// The number of an upload that was begun (CreateMultipartUpload).
    package static func uploadID(_ text: [UInt8]) -> String? {
        let reader = ElementReader(text)
        guard let result = reader.first("InitiateMultipartUploadResult"),
            let id = reader.text("UploadId", in: result), (1...1_024).contains(id.utf8.count)
        else { return nil }
        return id
    }

    /// The text that completes an upload (CompleteMultipartUpload).
    package static func completion(tags: [String]) -> [UInt8] {
        var text = "<CompleteMultipartUpload>"
        for (index, tag) in tags.enumerated() {
            let shown = tag.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
            text += "<Part><PartNumber>\(index + 1)</PartNumber><ETag>\(shown)</ETag></Part>"
        }
        return Array((text + "</CompleteMultipartUpload>").utf8)
    }
}

/// Finds elements of a text by name; attributes and prefixes of names are skipped.
///
/// Elements of one name do not contain each other in S3's texts. Each search is one pass.
struct ElementReader {
    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The content of the first element of a name.
    func first(_ name: String) -> Range<Int>? {
        next(Array(name.utf8), in: 0..<bytes.count)?.content
    }

    /// The contents of all elements of a name.
    func all(_ name: String, in range: Range<Int>) -> [Range<Int>] {
        let name = Array(name.utf8)
        var found: [Range<Int>] = []
        var rest = range
        while let element = next(name, in: rest) {
            found.append(element.content)
            rest = element.end..<range.upperBound
        }
        return found
    }

    /// The text of the first element of a name, with entities replaced; nil if there is none, or it
    /// is not text.
    func text(_ name: String, in range: Range<Int>) -> String? {
        guard let element = next(Array(name.utf8), in: range) else { return nil }
        return Self.decoded(bytes[element.content])
    }

    private func next(
        _ name: [UInt8], in range: Range<Int>
    ) -> (content: Range<Int>, end: Int)? {
        var position = range.lowerBound
        while let tag = tag(from: position, in: range) {
            position = tag.end
            guard !tag.isEnd, tag.name.elementsEqual(name) else { continue }
            if tag.isEmpty { return (tag.end..<tag.end, tag.end) }
            let start = tag.end
            while let other = self.tag(from: position, in: range) {
                position = other.end
                if other.isEnd, other.name.elementsEqual(name) {
                    return (start..<other.start, other.end)
                }
            }
            return nil
        }
        return nil
    }

    private struct Tag {
        var start: Int
        var end: Int
        var name: ArraySlice<UInt8>
        var isEnd: Bool
        var isEmpty: Bool
    }

    /// The next tag, declarations and comments included.
    private func tag(from position: Int, in range: Range<Int>) -> Tag? {
        guard let start = bytes[position..<range.upperBound].firstIndex(of: 0x3C),
            let close = bytes[start..<range.upperBound].firstIndex(of: 0x3E)
        else { return nil }
        var inner = bytes[(start + 1)..<close]
        let isEnd = inner.first == 0x2F
        if isEnd { inner.removeFirst() }
        let isEmpty = !isEnd && inner.last == 0x2F
        if isEmpty { inner.removeLast() }
        var name = inner.prefix { $0 > 0x20 }
        if let colon = name.firstIndex(of: 0x3A) { name = name[(colon + 1)...] }
        return Tag(start: start, end: close + 1, name: name, isEnd: isEnd, isEmpty: isEmpty)
    }

    private static let entities: [String: UInt8] = [
        "amp": 0x26, "lt": 0x3C, "gt": 0x3E, "quot": 0x22, "apos": 0x27,
    ]

    private static func decoded(_ bytes: ArraySlice<UInt8>) -> String? {
        var text: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            if byte == 0x3C { return nil }
            guard byte == 0x26 else {
                text.append(byte)
                continue
            }
            let name = rest.prefix(8).prefix { $0 != 0x3B }
            let word = String(decoding: name, as: UTF8.self)
            if let known = entities[word] {
                text.append(known)
            } else if word.hasPrefix("#"),
                let code = ExternalNumber.integer(
                    word.dropFirst(word.hasPrefix("#x") ? 2 : 1), in: UInt32(0)...0x10FFFF,
                    radix: word.hasPrefix("#x") ? 16 : 10),
                let scalar = Unicode.Scalar(code)
            {
                text += String(Character(scalar)).utf8
            } else {
                return nil
            }
            rest = rest.dropFirst(name.count + 1)
        }
        return String(decoding: text, as: UTF8.self)
    }
}
