# For those who have Docker; `make image` builds the same without it.
#
#   docker build --build-arg VERSION=$(git describe --tags --always) --tag tapp .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /tapp .

# Roots of trust, and a user that is not root; no shell.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /tapp /tapp
USER 65532:65532
ENTRYPOINT ["/tapp"]
LABEL org.opencontainers.image.title=tapp org.opencontainers.image.licenses=Apache-2.0
