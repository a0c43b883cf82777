import SharedStore
import Testing

struct BucketXMLTests {
    @Test func `a page of a listing has names, sizes and where it goes on`() throws {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
            <Name>films</Name><Prefix>a</Prefix>
            <Contents><Key>a/&amp;&#x41;&#66;</Key><LastModified>x</LastModified>
            <ETag>&quot;abc&quot;</ETag><Size>12</Size><Owner><ID>me</ID></Owner></Contents>
            <Contents><Key>b</Key><Size>0</Size></Contents>
            <IsTruncated>true</IsTruncated><NextContinuationToken>tok</NextContinuationToken>
            </ListBucketResult>
            """
        let page = try #require(BucketListing(Array(text.utf8)))
        #expect(page.objects.map(\.name) == ["a/&AB", "b"])
        #expect(page.objects.map(\.size) == [12, 0] && page.objects[0].tag == "\"abc\"")
        #expect(page.next == "tok")
    }

    @Test func `a page that is longer than S3's is read to its end`() throws {
        let names = (1...BucketListing.mostObjects + 1).map { "name\($0)" }
        let contents = names.map { "<Contents><Key>\($0)</Key><Size>1</Size></Contents>" }
        let text = "<ListBucketResult>\(contents.joined())</ListBucketResult>"
        let page = try #require(BucketListing(Array(text.utf8)))
        #expect(page.objects.map(\.name) == names)
    }

    @Test func `an empty bucket is one page`() throws {
        let page = try #require(
            BucketListing(
                Array("<s3:ListBucketResult><Name>films</Name></s3:ListBucketResult>".utf8)))
        #expect(page.next == nil && page.objects.isEmpty)
    }

    @Test(arguments: [
        "", "<html>", "<ListBucketResult>", "<ListBucketResult><Contents/></ListBucketResult>",
        "<ListBucketResult><Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>9999999999999999999</Size></Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><Contents><Key>&bad;</Key><Size>1</Size></Contents></ListBucketResult>",
    ])
    func `other texts are no listing`(_ text: String) {
        let page = BucketListing(Array(text.utf8))
        #expect(page == nil || page?.objects.isEmpty == true && page?.next == nil)
    }

    @Test func `errors and numbers of uploads are read`() {
        let error = "<?xml?><Error><Code>AccessDenied</Code><Message>m</Message></Error>"
        #expect(BucketAnswer.errorCode(Array(error.utf8)) == "AccessDenied")
        #expect(BucketAnswer.errorCode(Array("<Error><Code>a b</Code></Error>".utf8)) == nil)
        let begun =
            "<InitiateMultipartUploadResult><UploadId>a&amp;b</UploadId></InitiateMultipartUploadResult>"
        #expect(BucketAnswer.uploadID(Array(begun.utf8)) == "a&b")
        #expect(
            String(decoding: BucketAnswer.completion(tags: ["\"a\""]), as: UTF8.self)
                .contains("<PartNumber>1</PartNumber><ETag>\"a\"</ETag>"))
    }

    @Test func `every cut of a page ends in a reading`() {
        let text = Array(
            "<ListBucketResult><Contents><Key>a&amp;</Key><Size>1</Size></Contents></ListBucketResult>"
                .utf8)
        for count in 0...text.count { _ = BucketListing(Array(text.prefix(count))) }
    }
}
