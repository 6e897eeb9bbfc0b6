<?php
// A router that reads the path with urldecode(), where REQUEST_URI ends at the query, and ignores empty segments.
$path = urldecode(explode('?', $_SERVER['REQUEST_URI'])[0]);
$segments = array_filter(explode('/', $path), 'strlen');
$file = realpath($_SERVER['TREE'] . '/' . implode('/', $segments));
if ($file !== false && is_dir($file)) {
    $file = realpath("$file/index.html");
}
if ($file === false || !str_starts_with($file, realpath($_SERVER['TREE']) . '/')) {
    http_response_code(404);
    exit("not found\n");
}
readfile($file);
