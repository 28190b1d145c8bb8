import Base
import Messages

/// grpc.reflection.v1.ServerReflection/ServerReflectionInfo: the published .proto files, compiled in.
enum ServerReflectionServerReflectionInfo: BidirectionalMethod {
    static func handle(
        _ requests: RequestStream<GRPCServerReflectionRequest>, _ call: StreamCall,
        _ replies: ReplyStream<GRPCServerReflectionResponse>
    ) async throws {
        while let request = try await requests.next() {
            try await replies.send(inTurn: false) {
                var response = GRPCServerReflectionResponse(validHost: request.host, originalRequest: request)
                response.messageResponse = answer(request)
                return (response, ())
            }
        }
    }

    private static func answer(
        _ request: GRPCServerReflectionRequest
    ) -> GRPCServerReflectionResponse.MessageResponse {
        switch request.messageRequest {
        case .listServices:
            let names = PublishedFile.all.flatMap(\.services)
            return .listServicesResponse(GRPCListServiceResponse(service: names.map { GRPCServiceResponse(name: $0) }))
        case .fileByFilename(let name):
            return files { $0.name == name }
        case .fileContainingSymbol(let symbol):
            return files { $0.symbols.contains(symbol) || $0.services.contains(symbol) }
        case .fileContainingExtension, .allExtensionNumbersOfType:
            return .errorResponse(
                GRPCErrorResponse(errorCode: StatusCode.notFound.rawValue, errorMessage: "no extensions"))
        case nil:
            return .errorResponse(
                GRPCErrorResponse(errorCode: StatusCode.invalidArgument.rawValue, errorMessage: "nothing asked"))
        }
    }

    /// The file and what it imports, so that one answer is enough.
    private static func files(
        _ isWanted: (PublishedFile) -> Bool
    ) -> GRPCServerReflectionResponse.MessageResponse {
        guard let file = PublishedFile.all.first(where: isWanted) else {
            return .errorResponse(
                GRPCErrorResponse(errorCode: StatusCode.notFound.rawValue, errorMessage: "no such file or symbol"))
        }
        var wanted: Set<Text> = [file.name]
        var names = [file.name]
        while let name = names.popLast() {
            for dependency in PublishedFile.all.first(where: { $0.name == name })?.dependencies ?? []
            where wanted.insert(dependency).inserted {
                names.append(dependency)
            }
        }
        let descriptors = PublishedFile.all.filter { wanted.contains($0.name) }.map(\.descriptor)
        return .fileDescriptorResponse(GRPCFileDescriptorResponse(fileDescriptorProto: descriptors))
    }
}
