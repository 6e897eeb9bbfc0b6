<?php
// A router for `php -S` that gets the path from parse_url().
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
$tree = realpath($_SERVER['DOCUMENT_ROOT']);
$file = is_string($path) ? realpath($tree . rawurldecode($path)) : false;
if ($file !== false && is_dir($file)) {
    $file = realpath("$file/index.html");
}
if ($file === false || !str_starts_with($file, "$tree/")) {
    http_response_code(404);
    exit("not found\n");
}
readfile($file);
