// Passes requests on to a server, on kernel TLS at both sides: Kestrel's to the clients, and YARP's HttpClient's to the server.
//
//   dotnet run -- --server https://localhost:8443 --port 8444
//
// The certificate is Kestrel's default one: that of the configuration (Kestrel:Certificates:Default), else of dotnet dev-certs.
using System.Net;
using KernelTls.AspNetCore;
using Yarp.ReverseProxy.Configuration;

WebApplicationBuilder builder = WebApplication.CreateBuilder(args);
ConfigurationManager configuration = builder.Configuration;

builder.WebHost.UseKernelTls().ConfigureKestrel(kestrel =>
    kestrel.Listen(IPAddress.Loopback, configuration.GetValue("port", 8444), endpoint => endpoint.UseHttps()));

RouteConfig route = new() { RouteId = "all", ClusterId = "server", Match = new RouteMatch { Path = "/{**path}" } };
ClusterConfig cluster = new()
{
    ClusterId = "server",
    Destinations = new Dictionary<string, DestinationConfig>
    {
        ["server"] = new() { Address = configuration["server"] ?? "https://localhost:8443" },
    },
};
builder.Services.AddReverseProxy()
    .LoadFromMemory([route], [cluster])
    .ConfigureHttpClient((_, handler) => handler.UseKernelTls());

WebApplication application = builder.Build();
application.MapReverseProxy();
application.Run();
