// A gRPC C++ server that does no work: it answers every Get at once with a record of the floor's size.
// Prints its port; ends by itself after the seconds it is given.
//   server SECONDS
#include "lookup.grpc.pb.h"
#include <cstdio>
#include <cstdlib>
#include <grpcpp/grpcpp.h>
#include <string>
#include <unistd.h>

class Users final : public peers::Users::CallbackService {
    const std::string record = std::string(370, 'u');

    grpc::ServerUnaryReactor *Get(grpc::CallbackServerContext *context, const peers::GetRequest *,
                                  peers::GetReply *reply) override {
        reply->set_user(record);
        auto *reactor = context->DefaultReactor();
        reactor->Finish(grpc::Status::OK);
        return reactor;
    }
};

int main(int argument_count, char **arguments) {
    if (argument_count != 2) return std::fprintf(stderr, "usage: server SECONDS\n"), 2;
    alarm(std::atoi(arguments[1]));
    Users users;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&users);
    auto server = builder.BuildAndStart();
    if (!server) return 1;
    std::printf("%d\n", port);
    std::fflush(stdout);
    server->Wait();
}
